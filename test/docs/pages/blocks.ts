// The fenced blocks of a tutorial or a how-to guide, as what a reader does with them.
//
//   ```console                  commands behind `$ ` (continued behind `> `), each with its output
//   ```console terminal=NAME    the same in another terminal; `^C` ends the command that runs there
//   ```LANGUAGE name=FILE       a file that the reader writes
//   ```diff name=FILE           an edit of a file that is there

export interface Command {
  /** `^C` ends the command before it, which runs until then. */
  readonly text: string;
  readonly output: readonly string[];
  /** The index of the first line of the output in the page. */
  readonly line: number;
}

export interface ConsoleBlock {
  readonly kind: 'console';
  readonly terminal: string;
  readonly commands: readonly Command[];
}

export interface FileBlock {
  readonly kind: 'file';
  readonly name: string;
  readonly text: string;
}

export interface EditBlock {
  readonly kind: 'edit';
  readonly name: string;
  readonly before: string;
  readonly after: string;
}

export type PageBlock = ConsoleBlock | FileBlock | EditBlock;

export const INTERRUPT = '^C';
export const FIRST_TERMINAL = 'first';

/** The blocks of a page in their order; throws for a block that no reader could follow. */
export function blocksOf(page: string): readonly PageBlock[] {
  const blocks: PageBlock[] = [];
  const lines = page.split('\n');
  for (let index = 0; index < lines.length; index += 1) {
    const [, info] = /^```(.*)$/.exec(lines[index] ?? '') ?? [];
    if (info === undefined) continue;
    const end = lines.indexOf('```', index + 1);
    if (end < 0) throw new Error(`line ${index + 1}: the block has no end`);
    blocks.push(blockOf(info, lines.slice(index + 1, end), index + 1));
    index = end;
  }
  return blocks;
}

function blockOf(info: string, lines: readonly string[], start: number): PageBlock {
  const [language = '', ...options] = info.split(' ');
  const option = (key: string): string | undefined =>
    options.find((each) => each.startsWith(`${key}=`))?.slice(key.length + 1);
  if (language === 'console') {
    return { kind: 'console', terminal: option('terminal') ?? FIRST_TERMINAL, commands: commandsOf(lines, start) };
  }
  const name = option('name');
  if (name === undefined) throw new Error(`line ${start}: a block is a console or has a name, or nothing executes it`);
  if (language !== 'diff') return { kind: 'file', name, text: `${lines.join('\n')}\n` };
  const side = (mark: string): string =>
    lines.flatMap((line) => (line.startsWith(' ') || line.startsWith(mark) ? [`${line.slice(1)}\n`] : [])).join('');
  return { kind: 'edit', name, before: side('-'), after: side('+') };
}

function commandsOf(lines: readonly string[], start: number): readonly Command[] {
  const commands: { text: string; output: string[]; line: number }[] = [];
  for (const [index, line] of lines.entries()) {
    const last = commands.at(-1);
    const line_ = start + index + 1;
    if (line.startsWith('$ ')) commands.push({ text: line.slice(2), output: [], line: line_ });
    else if (line === INTERRUPT) commands.push({ text: line, output: [], line: line_ });
    else if (last === undefined) throw new Error(`line ${line_}: output without a command`);
    else if (line.startsWith('> ') && last.output.length === 0) {
      last.text += `\n${line.slice(2)}`;
      last.line = line_;
    } else last.output.push(line);
  }
  // A blank line before the next prompt is there for the eye.
  return commands.map(({ output, ...command }) => ({ ...command, output: withoutEnd(output) }));
}

const withoutEnd = (lines: readonly string[]): readonly string[] => (lines.at(-1) === '' ? lines.slice(0, -1) : lines);
