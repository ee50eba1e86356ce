"""The messages of `getaddrinfo` and of ENETUNREACH in other languages.

From the message catalogues of glibc 2.36 (`libc.mo`): what programs print where no network can be reached. A
refused connection is left out: most of those are of this machine.
"""

from __future__ import annotations

import re
from typing import Final

NO_NAME: Final = {
    "bg": (
        "Не е известно името на услугата",
        "Временен неуспех при определянето на име",
        "Не е асоцииран адрес за името на компютъра",
    ),
    "ca": (
        "El nom o servei no és conegut",
        "Fallada temporal a la resolució de noms",
        "No hi ha cap adreça associada amb el nom d’estació",
    ),
    "cs": (
        "Neznámé jméno nebo služba",
        "Dočasná chyba při vyhodnocování jména",
        "Jméno počítače nemá přiřazenu adresu",
    ),
    "da": (
        "Navn eller tjeneste ukendt",
        "Midlertidig fejl i navneopslag",
        "Ingen adresse associeret med værtsnavn",
    ),
    "de": (
        "Der Name oder der Dienst ist nicht bekannt",
        "Temporärer Fehler bei der Namensauflösung",
        "Zu diesem Hostnamen gehört keine Adresse",
    ),
    "el": (
        "Το όνομα ή η υπηρεσία δεν είναι γνωστά",
        "Προσωρινή αποτυχία κατά την ανάλυση ονόματος",
        "Καμιά διεύθυνση δε συνδέεται με το όνομα συστήματος",
    ),
    "eo": (
        "Nomo aŭ servo ne konatas",
        "Dumtempa malsukceso ĉe nom-eltrovo",
        "Neniu adreso estas asociata kun nomo de gastiga komputilo",
    ),
    "es": (
        "Nombre o servicio desconocido",
        "Fallo temporal en la resolución del nombre",
        "No existe ninguna dirección asociada al nombre",
    ),
    "fi": (
        "Nimeä tai palvelua ei tunneta",
        "Tilapäinen virhe nimenselvityksessä",
        "Konenimeen ei liity osoitetta",
    ),
    "fr": (
        "Nom ou service inconnu",
        "Échec temporaire dans la résolution du nom",
        "Aucune adresse associée avec le nom de l'hôte",
    ),
    "gl": (
        "Nome ou servicio descoñecido",
        "Fallo temporal na resolución de nomes",
        "Non hai un enderezo asociado ao nome de servidor",
    ),
    "hr": (
        "Ime ili servis nije poznato",
        "Privremeni neuspjeh u rješavanju imena",
        "Nema adrese povezane s hostname",
    ),
    "hu": (
        "A név vagy a szolgáltatás nem ismert",
        "Átmeneti névfeloldási hiba",
        "Nincs cím társítva a gépnévhez",
    ),
    "id": (
        "Nama atau layanan tidak diketahui",
        "Kegagalan sementara dalam resolusi nama",
        "Tidak ada alamat terasosiasi dengan hostname",
    ),
    "it": (
        "Nome o servizio sconosciuto",
        "Errore temporaneo nella risoluzione del nome",
        "Nessun indirizzo associato al nome host",
    ),
    "ja": (
        "名前またはサービスが不明です",
        "名前解決に一時的に失敗しました",
        "ホスト名にアドレスが割り当てられていません",
    ),
    "ko": (
        "이름 혹은 서비스를 알 수 없습니다",
        "name resolution에서 일시적인 실패",
        "호스트이름과 대응되는 주소가 없음",
    ),
    "lt": (
        "Pavadinimas arba tarnyba nežinoma",
        "Laikinas vardų paieškos sutrikimas",
        "Nėra su vardu susieto adreso",
    ),
    "nb": (
        "Navn eller tjeneste ukjent",
        "Midlertidig feil i navneoppslag",
        "Ingen adresse assosiert med vertsnavn",
    ),
    "nl": (
        "Naam of dienst is niet bekend",
        "Tijdelijk probleem in naamsherleiding",
        "Aan hostnaam is geen adres verbonden",
    ),
    "pl": (
        "Ta nazwa lub usługa jest nieznana",
        "Odwzorowanie nazwy jest chwilowo niemożliwe",
        "Brak adresu związanego z nazwą hosta",
    ),
    "pt": (
        "Nome ou serviço desconhecidos",
        "Falha temporária na resolução de nome",
        "Sem endereço associado ao nome de servidor",
    ),
    "pt_BR": (
        "Nome ou serviço desconhecido",
        "Falha temporário na resolução de nome",
        "Não há endereço associado com o nome",
    ),
    "ru": (
        "Неизвестное имя или служба",
        "Временный сбой в разрешении имен",
        "С именем узла не связано ни одного адреса",
    ),
    "sk": (
        "Názov alebo služba neznáme",
        "Dočasná chyba pri riešení názvu",
        "Názov počítača nemá priradenú adresu",
    ),
    "sl": (
        "Ime ali storitev ni poznana",
        "Razreševanje imena začasno ni uspelo",
        "Z imenom gostitelja ni povezan noben naslov",
    ),
    "sr": (
        "Није познат назив или сервер",
        "Привремени неуспех одређивања назива",
        "Ниједна адреса није придружена називу домаћина",
    ),
    "sv": (
        "Namn eller tjänst okänd",
        "Namnuppslagning misslyckades temporärt",
        "Ingen adress associerad med värdnamn",
    ),
    "tr": (
        "İsim ya da servis bilinmiyor",
        "İsim çözünürlüğünde geçici başarısızlık",
        "Makina ismiyle ilişkili adres yok",
    ),
    "uk": (
        "Невідома назва чи сервіс",
        "Тимчасова помилка розв'язання назв",
        "З даною назвою вузла не пов'язано жодної адреси",
    ),
    "vi": (
        "Không rõ tên hoặc dịch vụ",
        "Tạm thời không thể phân giải tên",
        "Không có địa chỉ liên quan đến tên máy",
    ),
    "zh_CN": (
        "未知的名称或服务",
        "域名解析暂时失败",
        "没有与主机名关联的地址",
    ),
    "zh_TW": (
        "名稱或服務未知",
        "解析名稱時發生暫時性錯誤",
        "沒有位址關聯至此主機名稱",
    ),
}
"""By language, for EAI_NONAME, EAI_AGAIN and EAI_NODATA."""

NO_NETWORK: Final = {
    "bg": "Мрежата е недостъпна",
    "ca": "La xarxa és inabastable",
    "cs": "Síť není dostupná",
    "da": "Netværket er ikke tilgængeligt",
    "de": "Das Netzwerk ist nicht erreichbar",
    "el": "Το δίκτυο δεν είναι προσπελάσιμο",
    "eo": "La reto ne atingeblas",
    "es": "La red es inaccesible",
    "fi": "Verkkoa ei tavoiteta",
    "fr": "Le réseau n'est pas accessible",
    "gl": "Non se pode chegar á rede",
    "hr": "Mreža nije dostupna",
    "hu": "A hálózat elérhetetlen",
    "id": "Jaringan tidak dapat dicapai",
    "it": "La rete non è raggiungibile",
    "ja": "ネットワークに届きません",
    "ko": "네트워크가 접근 불가능합니다",
    "lt": "Tinklas neprieinamas",
    "nb": "Nettverket er ikke tilgjengelig",
    "nl": "Netwerk is onbereikbaar",
    "pl": "Sieć jest niedostępna",
    "pt": "Rede inacessível",
    "pt_BR": "A rede está fora de alcance",
    "ru": "Сеть недоступна",
    "sk": "Sieť nie je dostupná",
    "sl": "Omrežje ni dostopno",
    "sr": "Мрежа је недостижна",
    "sv": "Nätverket kan inte nås",
    "tr": "Ağ erişilebilir durumda değil",
    "uk": "Не вдалося отримати доступ до мережі",
    "vi": "Không thể kết nối mạng",
    "zh_CN": "网络不可达",
    "zh_TW": "無法接觸網路",
}
"""By language."""

NO_NAME_PATTERN: Final = "|".join(re.escape(text) for texts in NO_NAME.values() for text in texts)
NO_NETWORK_PATTERN: Final = "|".join(map(re.escape, NO_NETWORK.values()))
NETWORK_WORDS: Final = (*(text for texts in NO_NAME.values() for text in texts), *NO_NETWORK.values())
