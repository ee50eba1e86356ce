"""Programs in Perl, Ruby, PHP, Lua and jq, run under a hypothesis about the environment.

`grammars` parses a program; a class for each language walks its syntax tree (`perl`, `ruby`, `php`, `lua`;
jq has a parser of its own, `jq_syntax`). What the languages share is in `machine` (output, environment,
conditions that are not known), `loops` (over the environment), `collections` (lists and mappings), `texts`
(comparing, formatting) and `json_text`. Anything that is not modelled raises `UnknownError`: what comes
behind it can be any text. Python, JavaScript and awk run on the same machine, from the folder above.
"""
