"""Programs in scripting languages, run under a hypothesis about the environment.

A folder for each language has its command lines (`command`), its interpreter (`program`), its functions
(`library`) and, where there is no grammar for it, its parser (`syntax`); it is imported where it is needed.
What the languages share stands here: `machine` (output, environment, other programs), `scopes` (variables),
`conditions` (what is true or equal, also where it is not known), `grammars` (syntax trees), `loops` (over the
environment), `collections` (lists and mappings), `texts` (comparing, formatting), `regexes`, `json_text`, and
`commands` (where the code of a program stands).

Anything that is not modelled raises `UnknownError`: what comes behind it can be any text. In Python and
JavaScript such a part alone is unknown (`recovery`): `effects` gives by its syntax what it may assign, change
and write. Ways in which a part can turn out are joined where they leave the same behind (`ways`).
"""
