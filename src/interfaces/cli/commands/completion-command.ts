import { quoteArgument } from '../arguments.js';
import { type CliCommand, COMMON_OPTIONS, type CommandOption } from '../command.js';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

/** The script that a user evaluates in the shell. */
export function completionScript(shell: Shell, commands: readonly CliCommand[]): string {
  return { bash: bashScript, zsh: zshScript, fish: fishScript }[shell](commands);
}

const optionsOf = ({ options }: CliCommand): readonly CommandOption[] => [...options, ...COMMON_OPTIONS];
const optionWords = (command: CliCommand): string =>
  optionsOf(command)
    .map(({ name }) => `--${name}`)
    .join(' ');

/** The words that may follow these words of a command, each once. */
function nextWords(commands: readonly CliCommand[], before: readonly string[]): readonly string[] {
  const following = commands
    .map(({ name }) => name.split(' '))
    .filter((words) => words.length > before.length && before.every((word, i) => words[i] === word))
    .map((words) => words[before.length] ?? '');
  return [...new Set(following)].toSorted();
}

/** Every beginning of a command, and the words that may follow. */
function branches(commands: readonly CliCommand[]): readonly (readonly [string, readonly string[]])[] {
  const beginnings = new Set(['']);
  for (const { name } of commands) {
    const words = name.split(' ');
    for (let count = 1; count < words.length; count += 1) beginnings.add(words.slice(0, count).join(' '));
  }
  return [...beginnings].map((text) => [text, nextWords(commands, text === '' ? [] : text.split(' '))] as const);
}

function bashScript(commands: readonly CliCommand[]): string {
  const options = commands.map((command) => `    '${command.name}') echo '${optionWords(command)}' ;;`);
  const words = branches(commands).map(([before, next]) => `    '${before}') echo '${next.join(' ')}' ;;`);
  return `# bash completion of turnpike: eval "$(turnpike completion bash)"
_turnpike_options() {
  case "$1" in
${options.join('\n')}
  esac
}
_turnpike_words() {
  case "$1" in
${words.join('\n')}
  esac
}
_turnpike() {
  local current="\${COMP_WORDS[COMP_CWORD]}" command='' name='' word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in -*) break ;; esac
    command="\${command:+$command }$word"
    [ -n "$(_turnpike_options "$command")" ] && name="$command"
  done
  case "$current" in
    -*) COMPREPLY=($(compgen -W "$(_turnpike_options "$name")" -- "$current")) ;;
    *) COMPREPLY=($(compgen -W "$(_turnpike_words "$command")" -- "$current")) ;;
  esac
  [ "\${#COMPREPLY[@]}" -gt 0 ] || COMPREPLY=($(compgen -f -- "$current"))
}
complete -F _turnpike turnpike
`;
}

/** zsh runs completions of bash. */
const zshScript = (commands: readonly CliCommand[]): string =>
  `# zsh completion of turnpike: eval "$(turnpike completion zsh)"
autoload -U +X compinit && compinit
autoload -U +X bashcompinit && bashcompinit
${bashScript(commands).split('\n').slice(1).join('\n')}`;

function fishScript(commands: readonly CliCommand[]): string {
  const lines = commands.flatMap((command) => {
    const words = command.name.split(' ');
    const last = words.at(-1) ?? '';
    const after = words
      .slice(0, -1)
      .map((word) => `__fish_seen_subcommand_from ${word}`)
      .join('; and ');
    const begins = words.length === 1 ? '__fish_use_subcommand' : after;
    const inCommand = words.map((word) => `__fish_seen_subcommand_from ${word}`).join('; and ');
    return [
      `complete -c turnpike -n '${begins}' -a ${last} -d '${quoteFish(command.summary)}'`,
      ...optionsOf(command).map(
        ({ name, value, help }) =>
          `complete -c turnpike -n '${inCommand}' -l ${name}${value === undefined ? '' : ' -r'} -d '${quoteFish(help)}'`,
      ),
    ];
  });
  return `# fish completion of turnpike: turnpike completion fish | source\n${lines.join('\n')}\n`;
}

const quoteFish = (text: string): string => text.replaceAll('\\', '\\\\').replaceAll("'", "\\'");

/** `turnpike completion SHELL`: prints the script that completes commands and options. */
export const completion = (commands: () => readonly CliCommand[]): CliCommand => {
  const command: CliCommand = {
    name: 'completion',
    access: 'none',
    summary: 'Print the completion script of a shell',
    operands: { usage: SHELLS.join('|'), min: 1, max: 1 },
    options: [],
    notes: ['For example in ~/.bashrc: eval "$(turnpike completion bash)"'],
    async run(args, io) {
      const [given = ''] = args.operands;
      const shell = SHELLS.find((name) => name === given);
      if (shell === undefined) throw args.usageError(`${quoteArgument(given)} is not one of ${SHELLS.join(', ')}`);
      await io.stdout.write(completionScript(shell, commands()));
      return 0;
    },
  };
  return command;
};
