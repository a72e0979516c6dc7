import { type JsonObject, canonicalJson } from '../../../../core/contract/json.js';
import { CLIENT_TIMEOUT_S, commandLine, hookWords, wrappedLine } from '../hook-command-line.js';
import { objectIn } from '../hook-handlers.js';
import { readToml } from '../read-toml.js';
import {
  BOTH_LEVELS,
  EditProblem,
  jsonEditor,
  PRIVATE_MODE,
  serverWords,
  type Editor,
  type InstallTarget,
} from './editor.js';
import { addEntries, removeEntries } from './hook-entries.js';

const CONFIG = { levels: BOTH_LEVELS, userFile: 'config.toml', projectFile: '.codex/config.toml' } as const;
const LATER_EVENTS = ['PostToolUse', 'SessionStart', 'SessionEnd', 'SubagentStop'] as const;

/** The commands that Codex must trust. */
export const codexCommands = (target: InstallTarget): readonly string[] => [
  wrappedLine(hookWords(target)),
  commandLine(hookWords(target)),
];

const tomlEditor = (addLines: (target: InstallTarget | null) => TomlLines): Editor => ({
  ...CONFIG,
  mode: PRIVATE_MODE,
  add: (text, target) => addToml(text ?? '', addLines(target)),
  remove: (text) => {
    const left = text
      .replace(BLOCK, '')
      .split('\n')
      .filter((line) => !line.endsWith(MARK))
      .join('\n');
    return left.trim() === '' ? null : left;
  },
});

/** The hooks, and no shell tool: no hook sees what is written into a shell that a call has opened. */
const CODEX_GATE: readonly Editor[] = [
  jsonEditor(
    { levels: BOTH_LEVELS, userFile: 'hooks.json', projectFile: '.codex/hooks.json' },
    {
      add: (settings, target) => {
        const handler = (command: string): JsonObject => ({ type: 'command', command, timeout: CLIENT_TIMEOUT_S });
        const later = { hooks: [handler(commandLine(hookWords(target)))] };
        return addEntries(settings, {
          PreToolUse: { hooks: [handler(wrappedLine(hookWords(target)))] },
          ...Object.fromEntries(LATER_EVENTS.map((event) => [event, later])),
        });
      },
      remove: (settings) => removeEntries(settings, 'codex'),
    },
  ),
  tomlEditor(() => ({ shellOff: true, top: null, block: null })),
];

/** No shell tool, a read-only sandbox, and the server of Turnpike. */
const CODEX_STRONG: readonly Editor[] = [
  tomlEditor((target) => ({
    shellOff: true,
    top: 'sandbox_mode = "read-only"',
    block: target === null ? null : serverTable(serverWords(target)),
  })),
];

function serverTable([command = '', ...args]: readonly string[]): string {
  const list = args.map(tomlString).join(', ');
  return `[mcp_servers.turnpike]\ncommand = ${tomlString(command)}\nargs = [${list}]`;
}

/** JSON and TOML escape these characters in the same way. */
const tomlString = (text: string): string => JSON.stringify(text).replaceAll('\u007f', '\\u007F');

interface TomlLines {
  /** `shell_tool = false` in `[features]`. */
  readonly shellOff: boolean;
  /** A line before the first table. */
  readonly top: string | null;
  /** A table of its own. */
  readonly block: string | null;
}

const MARK = ' # turnpike';
const BLOCK = /\n?# turnpike: begin\n(?:[^\n]*\n)*?# turnpike: end\n/g;
const SHELL_OFF = 'shell_tool = false';
const FEATURES_HEADER = /^[ \t]*\[[ \t]*features[ \t]*\][ \t]*(?:#[^\n]*)?$/m;

/**
 * Adds lines as text, so that the rest keeps its form, and verifies what they mean.
 * @throws EditProblem if the file is not understood, or has other values already
 */
function addToml(text: string, { shellOff, top, block }: TomlLines): string {
  const before = readToml(text);
  if (before === null) throw new EditProblem('is not TOML that this version understands: correct or simplify it');
  const features = objectIn(before, 'features');
  const topName = top?.split(' ')[0] ?? '';
  if (features['shell_tool'] !== undefined && features['shell_tool'] !== false)
    throw new EditProblem('switches the shell tool on: set `shell_tool = false` in [features] yourself');
  const present = before[topName];
  if (top !== null && present !== undefined && (typeof present !== 'string' || `${topName} = "${present}"` !== top))
    throw new EditProblem(`has another ${topName}: set \`${top}\` yourself`);
  if (block !== null && Object.hasOwn(objectIn(before, 'mcp_servers'), 'turnpike'))
    throw new EditProblem('has a server "turnpike" already: remove it first');
  const needsShell = shellOff && features['shell_tool'] === undefined;
  const hasHeader = FEATURES_HEADER.test(text);
  const tables = [needsShell && !hasHeader ? `[features]\n${SHELL_OFF}` : null, block].filter((one) => one !== null);
  let after = text;
  if (needsShell && hasHeader) after = after.replace(FEATURES_HEADER, (header) => `${header}\n${SHELL_OFF}${MARK}`);
  if (top !== null && present === undefined) after = `${top}${MARK}\n${after}`;
  if (tables.length > 0) {
    const gap = after === '' ? '' : after.endsWith('\n') ? '\n' : '\n\n';
    after = `${after}${gap}# turnpike: begin\n${tables.join('\n')}\n# turnpike: end\n`;
  }
  verifyToml(before, after);
  return after;
}

/** @throws EditProblem if the lines do not mean what they should, as after a header that is part of a text */
function verifyToml(before: JsonObject, text: string): void {
  const after = readToml(text);
  const isRight = after !== null && objectIn(after, 'features')['shell_tool'] === false;
  const others = (config: JsonObject): string =>
    canonicalJson(
      Object.fromEntries(
        Object.entries(config).filter(([name]) => !['features', 'mcp_servers', 'sandbox_mode'].includes(name)),
      ),
    );
  if (!isRight || others(after) !== others(before))
    throw new EditProblem('has a form in which lines cannot be added: set `shell_tool = false` in [features] yourself');
}

/** The editors of each profile. */
export const CODEX_EDITORS = { gate: CODEX_GATE, strong: CODEX_STRONG } as const;
