"""Bad team files about processes of their own, each with its label and what is said after the file's name."""

CASES = [
    (
        "a limit for a tool that is built in",
        "team: t\nroles: [{name: a, tools: [{use: calculate, memory_mb: 99}]}]",
        ":2: roles.0.tools.0 (a): calculate is built in and runs in the worker; leave out 'memory_mb'",
    ),
    (
        "a limit for a tool without a process",
        "team: t\nroles: [{name: a, tools: [{use: 'NAME:fine', isolated: false, env: [HOME]}]}]",
        ":2: roles.0.tools.0 (a): env is for a process of its own; write isolated: true, or leave it out",
    ),
    (
        "a limit for a function without a process",
        "team: t\nroles: [{name: a, run: 'NAME:fine', memory_mb: 99}]",
        ":2: roles.0 (a): memory_mb is for a process of its own; write isolated: true, or leave it out",
    ),
    (
        "too little memory",
        "team: t\nroles: [{name: a, tools: [{use: 'NAME:fine', memory_mb: 1}]}]",
        ":2: roles.0.tools.0.memory_mb (a): needs a number of at least 64, not 1",
    ),
    (
        "a misspelt limit of a tool",
        "team: t\nroles: [{name: a, tools: [{use: 'NAME:fine', memory: 99}]}]",
        ":2: roles.0.tools.0.memory (a): unknown key 'memory'; did you mean 'memory_mb'? known: ",
    ),
    (
        "a tool without a name",
        "team: t\nroles: [{name: a, tools: [{isolated: false}]}]",
        ":2: roles.0.tools.0.use (a): is missing; add it, such as `use: shop:stock_of`",
    ),
    (
        "a tool that is a number",
        "team: t\nroles: [{name: a, tools: [7]}]",
        ":2: roles.0.tools.0 (a): needs the name of a tool, or a mapping with `use`, not 7",
    ),
    (
        "a variable that nobody could set",
        "team: t\nroles: [{name: a, tools: [{use: 'NAME:fine', env: [A-B]}]}]",
        ":2: roles.0.tools.0.env.0 (a): 'A-B' is no name of a variable; write one such as SHOP_TOKEN",
    ),
    (
        "an unknown tool in a mapping",
        "team: t\nroles: [{name: a, tools: [{use: calculator}]}]",
        ":2: roles.0.tools.0 (a): unknown tool 'calculator'; did you mean 'calculate'? known: ",
    ),
]
