"""Bad keys of tools, as in bad_teams.py."""

from tests.unit.agent.bad_teams import GOOD

CASES = [
    (
        "no hosts",
        "team: t\nroles: [{name: a, tools: [scrape_page]}]\nweb: {http: true}",
        ":2: roles.0.tools.0 (a): scrape_page needs the key 'web.hosts' with the hosts that may be read; add it",
    ),
    (
        "an unknown provider",
        GOOD + "web: {search: {provider: google}}",
        ":3: web.search.provider: needs one of 'brave' or 'tavily', not 'google'",
    ),
    (
        "misspelt key of a search",
        GOOD + "web: {search: {provider: brave, key_evn: X_KEY}}",
        ":3: web.search.key_evn: unknown key 'key_evn'; did you mean 'key_env'? known: ",
    ),
    (
        "a key that would be shown",
        GOOD + "web: {search: {provider: brave, key_env: HOME}}",
        ":3: web.search.key_env: 'HOME' is not the name of a variable that ends in _KEY, _TOKEN or _SECRET",
    ),
    (
        "misspelt host",
        GOOD + "web: {hosts: ['exa mple']}",
        ":3: web.hosts.0: 'exa mple' is not a host such as example.org or *.example.org, or \"*\" for every public ",
    ),
    (
        "files are not there",
        GOOD + "files: {root: gone}",
        ":3: files.root: 'HERE/gone' is not a folder; make it, or name one that is there",
    ),
    ("files without a root", GOOD + "files: {}", ":3: files.root: is missing; add it, such as `root: documents`"),
    (
        "nobody may write",
        "team: t\nroles: [{name: a, tools: [write_file]}]\nfiles: {root: bad}",
        ":2: roles.0.tools.0 (a): write_file needs files.write: true; add it",
    ),
    (
        "no database",
        "team: t\nroles: [{name: a, tools: [query_database]}]",
        ":2: roles.0.tools.0 (a): query_database needs the key 'tables' with a folder, or 'databases' with ",
    ),
    (
        "a database that is not there",
        GOOD + "databases: {sales: gone.sqlite}",
        ":3: databases.sales: 'HERE/gone.sqlite' is not there; name a file or a folder that is",
    ),
    (
        "two databases of one name",
        GOOD + "tables: bad\ndatabases: {tables: bad}",
        ":4: databases.tables: the folder of the key 'tables' has this name; choose another",
    ),
    (
        "what is no database",
        "team: t\nroles: [{name: a, tools: [query_database]}]\ndatabases: {sales: NAME.py}",
        ":3: databases.sales: HERE/NAME.py: is no SQLite database that can be read: file is not a database",
    ),
    (
        "a cache for what has to be done",
        "team: t\nroles: [{name: a, tools: [{use: read_file, cache: true}]}]\nfiles: {root: bad}",
        ":2: roles.0.tools.0 (a): what read_file does has to be done each time; leave out cache",
    ),
    (
        "misspelt cache",
        "team: t\nroles: [{name: a, tools: [{use: calculate, cach: true}]}]",
        ":2: roles.0.tools.0.cach (a): unknown key 'cach'; did you mean 'cache'? known: ",
    ),
    (
        "a tool with a key that takes none",
        "team: t\nroles: [{name: a, tools: [{use: 'NAME:keyless', effect: keyed}]}]",
        ":2: roles.0.tools.0 (a): keyless has no parameter 'key'; a tool with effect: keyed passes it on to its ",
    ),
    (
        "a tool of one's own in the place of another",
        "team: t\nroles: [{name: a, tools: ['NAME:cannot_do']}]",
        ":2: roles.0.tools.0 (a): 'cannot_do' is a tool of every role that uses a model; rename this one",
    ),
    (
        "a tool that comes by itself",
        "team: t\nroles: [{name: a, tools: [cannot_do]}]",
        ":2: roles.0.tools.0 (a): every role that uses a model has cannot_do; leave it out",
    ),
    (
        "a tool without a name",
        "team: t\nroles: [{name: a, tools: [{cache: true}]}]",
        ":2: roles.0.tools.0.use (a): is missing; add it, such as `use: shop:stock_of`",
    ),
]
