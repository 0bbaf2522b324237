"""Bad team files, each with its label and what is said after the file's name.

`NAME` is the module beside the file, `HERE` its folder.
"""

GOOD = "team: t\nroles: [{name: ok}]\n"
CASES = [
    (
        "endless deadline",
        GOOD + "limits: {deadline_seconds: .inf}",
        ":3: limits.deadline_seconds: needs a finite number, not .inf",
    ),
    (
        "lanes in the wrong order",
        GOOD + "priorities: {high: 1, low: 2}",
        ":3: priorities: high must be at least normal, and normal at least low: they say who comes first",
    ),
    (
        "not a number",
        GOOD + "limits: {deadline_seconds: .nan}",
        ":3: limits.deadline_seconds: needs a finite number, not .nan",
    ),
    (
        "endless price",
        GOOD + "prices: {m: {input: .inf, output: 1}}",
        ":3: prices.m.input: needs a finite number, not .inf",
    ),
    (
        "negative",
        GOOD + "limits:\n  deadline_seconds: -3",
        ":4: limits.deadline_seconds: needs a number above 0, not -3",
    ),
    ("zero", GOOD + "limits: {in_flight: 0}", ":3: limits.in_flight: needs a number of at least 1, not 0"),
    ("too many", GOOD + "limits: {max_attempts: 11}", ":3: limits.max_attempts: needs a number of at most 10, not 11"),
    (
        "a function that is described anew",
        "team: t\nroles: [{name: a, run: 'NAME:fine', retry: {refine: true}}]",
        ":2: roles.0.retry (a): refine: true is for roles that use a model; a function is called again as it was",
    ),
    (
        "a misspelt retry",
        GOOD + "retry: {backof_seconds: 1}",
        ":3: retry.backof_seconds: unknown key 'backof_seconds'; did you mean 'backoff_seconds'? "
        "known: backoff_seconds, max_attempts, refine",
    ),
    ("half a task", GOOD + "limits: {in_flight: 1.5}", ":3: limits.in_flight: needs a whole number, not 1.5"),
    (
        "words for a number",
        GOOD + "limits: {in_flight: many}",
        ":3: limits.in_flight: needs a whole number, not 'many'",
    ),
    (
        "true for a number",
        GOOD + "limits: {in_flight: yes}",
        ":3: limits.in_flight: cannot be true; put it in quotes if it is meant as text",
    ),
    (
        "a second key",
        "team: t\nlimits: {in_flight: 1}\nroles: [{name: ok}]\nlimits: {in_flight: 2}",
        ":4: limits: a second key 'limits': the first is in line 2; keep one of them",
    ),
    (
        "a second key in a role",
        "team: t\nroles:\n- name: a\n  slots: 1\n  slots: 2",
        ":5: roles.0.slots (a): a second key 'slots': the first is in line 4; keep one of them",
    ),
    (
        "tags without brackets",
        "team: t\nroles: [{name: a, tags: research}]",
        ":2: roles.0.tags (a): needs a list, not 'research'; write [research]",
    ),
    (
        "a number as tag",
        "team: t\nroles: [{name: a, tags: [x, 7]}]",
        ":2: roles.0.tags.1 (a): needs text, not 7; put it in quotes",
    ),
    (
        "a date as name",
        "team: t\nroles: [{name: 2026-01-01}]",
        ":2: roles.0.name: needs text, not 2026-01-01; put it in quotes",
    ),
    (
        "a blank in a name",
        "team: t\nroles: [{name: a b}]",
        ":2: roles.0.name (a b): 'a b' cannot be a name: use 1 to 64 letters (a-z), digits, - and _",
    ),
    (
        "empty persona",
        "team: t\nroles:\n- name: a\n  persona:",
        ":4: roles.0.persona (a): needs text, not nothing; write one, or leave the key out",
    ),
    (
        "empty limits",
        GOOD + "limits:",
        ":3: limits: needs a mapping with keys, not nothing; write one, or leave the key out",
    ),
    ("roles by name", "team: t\nroles: {a: {}}", ":2: roles: needs a list, not a mapping"),
    ("a role that is a word", "team: t\nroles: [a]", ":2: roles.0: needs a mapping with keys, not 'a'"),
    ("no roles", "team: t\nroles: []", ":2: roles: needs at least one"),
    ("no team", "roles: [{name: a}]", ": team: is missing; add it, such as `team: research`"),
    (
        "misspelt roles",
        "team: t\nrolez: []",
        ":2: rolez: unknown key 'rolez'; did you mean 'roles'? known: callbacks, corpus, ",
    ),
    (
        "misspelt limit",
        GOOD + "limits: {inflight: 1}",
        ":3: limits.inflight: unknown key 'inflight'; did you mean 'in_flight'? known: ",
    ),
    (
        "misspelt supervisor",
        GOOD + "supervisor: {modle: x}",
        ":3: supervisor.modle: unknown key 'modle'; did you mean 'model'? known: ",
    ),
    (
        "misspelt tools",
        "team: t\nroles: [{name: a, toolz: [calculate]}]",
        ":2: roles.0.toolz (a): unknown key 'toolz'; did you mean 'tools'? known: ",
    ),
    (
        "misspelt run",
        "team: t\nroles: [{name: a, rum: 'roles:fine'}]",
        ":2: roles.0.rum (a): unknown key 'rum'; did you mean 'run'? known: ",
    ),
    (
        "misspelt price",
        GOOD + "prices: {m: {input: 1, outputs: 2}}",
        ":3: prices.m.outputs: unknown key 'outputs'; did you mean 'output'? known: input, output",
    ),
    ("the folder", GOOD + "folder: x", ":3: folder: unknown key 'folder'; known: "),
    (
        "a key that forges a line",
        GOOD + '"k\\e[31m\\nforged": 1',
        ":3: k\\x1b[31m\\nforged: unknown key ",
    ),
    ("a number as key", GOOD + "1: x", ":3: 1: unknown key '1'; known: "),
    (
        "unknown model",
        "team: t\nroles: [{name: a}, {name: writer, model: gpt-9}]",
        ":2: roles.1.model (writer): unknown model 'gpt-9'; known: auto, claude-…, offline",
    ),
    (
        "unknown model of the supervisor",
        GOOD + "supervisor: {model: of-line}",
        ":3: supervisor.model: unknown model 'of-line'; did you mean 'offline'? known: ",
    ),
    (
        "a function with a model",
        "team: t\nroles: [{name: a, run: 'NAME:fine', model: auto}]",
        ":2: roles.0.model (a): a role with `run` is a function and uses no model; leave out 'model', or `run`",
    ),
    (
        "a second role",
        "team: t\nroles:\n- name: a\n- name: a",
        ":4: roles.1.name (a): a second role named 'a': the first is roles.0; rename one of them",
    ),
    (
        "unknown tool",
        "team: t\nroles: [{name: a, tools: [calculator]}]",
        ":2: roles.0.tools.0 (a): unknown tool 'calculator'; did you mean 'calculate'? known: ",
    ),
    (
        "a tool twice",
        "team: t\nroles: [{name: a, tools: [calculate, calculate]}]",
        ":2: roles.0.tools.1 (a): a second tool named 'calculate': the first is tools.0; leave one out",
    ),
    (
        "no corpus",
        "team: t\nroles: [{name: a, tools: [search_corpus]}]",
        ":2: roles.0.tools.0 (a): search_corpus needs the key 'corpus' with a folder; add it",
    ),
    (
        "corpus is not there",
        GOOD + "corpus: nowhere",
        ":3: corpus: 'HERE/nowhere' is not a folder; make it, or name one that is there",
    ),
    (
        "tables with a NUL",
        GOOD + 'tables: "a\\0b"',
        ":3: tables: 'HERE/a\\x00b' is not a folder; make it, or name one that is there",
    ),
    (
        "bad table",
        "team: t\nroles: [{name: a, tools: [query_database]}]\ntables: bad",
        ":3: tables: HERE/bad/x.csv: row 2 has 1 value, the header has 2",
    ),
    (
        "run without a function",
        "team: t\nroles: [{name: a, run: words}]",
        ":2: roles.0.run (a): 'words' names no function; write module:function, such as roles:count",
    ),
    (
        "no such module",
        "team: t\nroles: [{name: a, run: 'not_there_at_all:f'}]",
        ":2: roles.0.run (a): not_there_at_all:f: cannot import 'not_there_at_all': No module named ",
    ),
    (
        "a module that does not import",
        "team: t\nroles: [{name: a, run: 'NAME_bad:f'}]",
        ":2: roles.0.run (a): NAME_bad:f: cannot import 'NAME_bad': No module named 'nowhere_to_be_found'",
    ),
    (
        "no such function",
        "team: t\nroles: [{name: a, run: 'NAME:fines'}]",
        ":2: roles.0.run (a): NAME:fines: 'NAME' has no function 'fines'; did you mean 'fine'? known: ",
    ),
    (
        "one parameter",
        "team: t\nroles: [{name: a, run: 'NAME:alone'}]",
        ":2: roles.0.run (a): NAME:alone: takes (task); a role's function takes (task, ctx)",
    ),
    (
        "three parameters",
        "team: t\nroles: [{name: a, run: 'NAME:three'}]",
        ":2: roles.0.run (a): NAME:three: takes (task, ctx, more); a role's function takes (task, ctx)",
    ),
    (
        "async that yields",
        "team: t\nroles: [{name: a, run: 'NAME:drops'}]",
        ":2: roles.0.run (a): NAME:drops: yields; a role's function returns its output once",
    ),
    (
        "a class",
        "team: t\nroles: [{name: a, run: 'NAME:Worker'}]",
        ":2: roles.0.run (a): NAME:Worker: is a class; a role is a function handler(task, ctx)",
    ),
    (
        "a tool with a lock",
        "team: t\nroles: [{name: a, tools: ['NAME:look_up']}]",
        ":2: roles.0.tools.0 (a): a model cannot fill in the parameter 'lock' of look_up: its type is ",
    ),
    (
        "a tool with a type that is not there",
        "team: t\nroles: [{name: a, tools: ['NAME:unnamed']}]",
        ":2: roles.0.tools.0 (a): cannot read the parameters of unnamed: name 'Missing' is not defined; ",
    ),
    (
        "a tool with any number of parameters",
        "team: t\nroles: [{name: a, tools: ['NAME:many']}]",
        ":2: roles.0.tools.0 (a): many has the parameter *names; a tool names all its parameters",
    ),
    (
        "a tool with a private parameter",
        "team: t\nroles: [{name: a, tools: ['NAME:hidden']}]",
        ":2: roles.0.tools.0 (a): hidden has the parameter _name; a tool's parameters begin with a letter",
    ),
    (
        "tabs",
        "team: t\nroles:\n\t- name: a",
        ":3: not a YAML file: while scanning for the next token found character '\\t' ",
    ),
    ("an open bracket", "team: t\nroles: [", ":2: not a YAML file: "),
    ("a day that is none", GOOD + "corpus: 2026-13-40", ": not a YAML file: month must be in 1..12"),
    ("a list", "- a", ": a team file is a mapping with the keys team and roles"),
    ("nothing", "", ": a team file is a mapping with the keys team and roles"),
    ("a list in itself", "team: t\nroles: &a [*a]", ":2: roles.0: needs a mapping with keys, not a list"),
    (
        "turns without end",
        "team: t\nroles: [{name: a, max_turns: 5000}]",
        ":2: roles.0.max_turns (a): needs a number of at most 1000, not 5000",
    ),
]
