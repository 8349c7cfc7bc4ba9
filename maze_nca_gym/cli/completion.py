"""Scripts by which shells complete commands, options and names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

PROGRAM = "maze-nca-gym"
_BASH = """_maze_nca_gym() {{
    local cur="${{COMP_WORDS[COMP_CWORD]}}" command="" option="" words="" word
    for word in "${{COMP_WORDS[@]:1:$((COMP_CWORD - 1))}}"; do
        case "$word" in
            -*) option="$word" ;;
            *) case "$command $word" in
                {commands}) command="${{command:+$command }}$word" ;;
            esac ;;
        esac
    done
    case "$command:$option" in
{words}
    esac
    if [ "${{cur#-}}" != "$cur" ]; then
        case "$command" in
{flags}
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
}}
complete -o default -F _maze_nca_gym {program}
"""
_ZSH = "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n"


def bash(words: Mapping[str, Sequence[str]], flags: Mapping[str, Mapping[str, Sequence[str]]]) -> str:
    """Return a completion script for bash; the arguments are the same as for `fish`.

    The script completes file names if no word fits.
    """
    after = {f"{name}:": following for name, following in words.items()}
    after |= {f"{name}:{flag}": known for name, own in flags.items() for flag, known in own.items()}
    paths = [path for path in words if path]
    return _BASH.format(
        commands="|".join(f'"{path}"' if " " in path else f'" {path}"' for path in paths),
        words="\n".join(f'        "{place}") words="{" ".join(known)}" ;;' for place, known in after.items() if known),
        flags="\n".join(f'            "{name}") words="{" ".join(own)}" ;;' for name, own in flags.items()),
        program=PROGRAM,
    )


def zsh(words: Mapping[str, Sequence[str]], flags: Mapping[str, Mapping[str, Sequence[str]]]) -> str:
    """Return a completion script for zsh, which runs the script for bash; the arguments are the same as for `fish`."""
    return _ZSH + bash(words, flags)


def fish(words: Mapping[str, Sequence[str]], flags: Mapping[str, Mapping[str, Sequence[str]]]) -> str:
    """Return a completion script for fish.

    Args:
        words: command -> its subcommands, or the names that it takes as arguments; "" is the program itself.
        flags: command -> option -> the names that the option takes.
    """
    lines = []
    for name, known in words.items():
        seen = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in name.split()) or "__fish_use_subcommand"
        start = f'complete -c {PROGRAM} -n "{seen}"'
        lines += [f'{start} -a "{" ".join(known)}"'] if known else []
        for flag, names in flags.get(name, {}).items():
            lines.append(f"{start} -l {flag[2:]}" + (f' -ra "{" ".join(names)}"' if names else ""))
    return "\n".join([*lines, ""])


SHELLS = {"bash": bash, "zsh": zsh, "fish": fish}
