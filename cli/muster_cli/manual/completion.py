"""`muster completion`: a script that lets a shell complete commands and options, made from the parser itself."""

import re
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING

from muster_bus.process.command import Exit
from muster_cli.arguments.parser import parsers
from muster_cli.view.console import say

if TYPE_CHECKING:
    from muster_bus.process.settings import Settings

# The word after the command decides; file names are completed where no option begins.
BASH = """\
_muster() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" words
    if [ "$COMP_CWORD" -eq 1 ]; then
        words="{commands}"
    else
        case "${{COMP_WORDS[1]}}" in
{cases}
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _muster muster
"""
ZSH = "autoload -U +X bashcompinit && bashcompinit\n"


def completion(given: Namespace, _settings: "Settings") -> int:
    say(script(given.shell, words_of_commands()).rstrip("\n"))
    return Exit.DONE


def words_of_commands() -> dict[str, list[str]]:
    """What may follow each command: its options and, where an argument is one of a few words, those."""
    commands = parsers()[1]
    return {name: _words(command) for name, command in commands.items()} | {"help": [*commands]}


def script(shell: str, words: Mapping[str, list[str]]) -> str:
    """For the start-up file of a shell."""
    if shell == "fish":
        return "".join(_fish(words))
    cases = "\n".join(f'        {name}) words="{" ".join(found)}" ;;' for name, found in words.items())
    bash = BASH.format(commands=" ".join(words), cases=cases)
    return ZSH + bash if shell == "zsh" else bash


def _words(command: ArgumentParser) -> list[str]:
    options = re.findall(r"^  (?:-\w, )?(--[a-z][a-z-]*)", command.format_help(), re.MULTILINE)
    choices = [word for group in re.findall(r"\{([^}]*)\}", command.format_usage()) for word in group.split(",")]
    return [*dict.fromkeys((*options, *choices))]


def _fish(words: Mapping[str, list[str]]) -> list[str]:
    lines = [f"complete -c muster -n __fish_use_subcommand -f -a '{' '.join(words)}'\n"]
    for name, found in words.items():
        condition = f"-n '__fish_seen_subcommand_from {name}'"
        lines += [
            f"complete -c muster {condition} " + (f"-l {word[2:]}" if word.startswith("--") else f"-a {word}") + "\n"
            for word in found
        ]
    return lines
