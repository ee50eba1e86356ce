"""The message of EROFS in other languages: no other error gives it away as surely.

From the message catalogues of glibc 2.36 (`libc.mo`), which shells, coreutils and git print under `LANG`. The
words around it differ from program to program; path and error number are enough.
"""

from __future__ import annotations

import re
from typing import Final

READ_ONLY: Final = {
    "bg": "Файлова система само за четене",
    "ca": "El sistema de fitxers és només de lectura",
    "cs": "Systém souborů je pouze pro čtení",
    "da": "Filsystem med kun læseadgang",
    "de": "Das Dateisystem ist nur lesbar",
    "el": "Αναγνώσιμο-μόνο σύστημα αρχείων",
    "eo": "Nur-lega dosiersistemo",
    "es": "Sistema de ficheros de sólo lectura",
    "fi": "Kirjoitussuojattu tiedostojärjestelmä",
    "fr": "Système de fichiers accessible en lecture seulement",
    "gl": "Sistema de ficheiros de só lectura",
    "hr": "Datotečni sustav je samo za čitanje",
    "hu": "Írásvédett fájlrendszer",
    "id": "Sistem berkas baca-saja",
    "it": "File system in sola lettura",
    "ja": "読み込み専用ファイルシステムです",
    "ko": "읽기전용 파일 시스템",
    "lt": "Failų sistema tik skaitymui",
    "nb": "Filsystem med kun lesetilgang",
    "nl": "Bestandssysteem is alleen-lezen",
    "pl": "System plików wyłącznie do odczytu",
    "pt": "Sistema de ficheiros só de leitura",
    "pt_BR": "Sistema de arquivos somente para leitura",
    "ru": "Файловая система доступна только для чтения",
    "sk": "Súborový systém dovoľuje len čítanie",
    "sl": "Datotečni sistem je zgolj za branje",
    "sr": "Систем датотека само за читање",
    "sv": "Skrivskyddat filsystem",
    "tr": "Salt-okunur dosya sistemi",
    "uk": "Файлова система тільки для зчитування",
    "vi": "Hệ thống tập tin chỉ cho đọc",
    "zh_CN": "只读文件系统",
    "zh_TW": "唯讀的檔案系統",
}
"""By language."""

READ_ONLY_PATTERN: Final = "|".join(re.escape(text) for text in READ_ONLY.values())
PREFIXES: Final = (
    "schwerwiegend", "fehler", "warnung", "erreur", "avertissement", "advertencia", "avís", "грешка",
    "ödesdigert", "fel", "varning", "onulmaz", "hata", "uyarı", "kesalahan", "peringatan",
    "致命錯誤", "錯誤", "警告",
)  # fmt: skip
"""What git 2.39 writes for `fatal`, `error` and `warning`."""
