// The programs that settings start as the hook. Each must be the hook program of this version, outside of the project:
// what is in the project, an agent may be allowed to change.

import { isJsonObject, type Json } from '../../../core/contract/json.js';
import type { Client } from '../hook-event.js';
import { bypassFinding, type ClientFacts, type ClientFinding, type SettingsFile } from './client-facts.js';
import { installRemedy, PREFIXES } from './findings.js';
import { CLINE_SCRIPT, commandLine, findHookCommand, HOOK_PROGRAM } from './hook-command-line.js';
import { readCommentedObject } from './read-commented-json.js';
import { readToml } from './read-toml.js';

/** A command that starts the hook. */
interface HookStart {
  readonly file: SettingsFile;
  /** The interpreter and the script. */
  readonly program: readonly string[];
}

/** The files that the settings of a client start as the hook. */
export const hookPrograms = (client: Client, files: readonly SettingsFile[]): readonly string[] => [
  ...new Set(startsIn(client, files).flatMap(({ program }) => program.filter((word) => word.startsWith('/')))),
];

/** What is wrong with them. The settings may have none: another finding says so. */
export function programFindings(facts: ClientFacts): readonly ClientFinding[] {
  const found = startsIn(facts.client, facts.files).flatMap((start) => findingOf(start, facts) ?? []);
  return [...new Map(found.map((finding) => [finding.message, finding])).values()];
}

function findingOf({ file, program }: HookStart, { client, ...facts }: ClientFacts): ClientFinding | null {
  const [interpreter = '', script = ''] = program;
  const at = (id: string, what: string): ClientFinding =>
    bypassFinding(`${PREFIXES[client]}.${id}`, `The hook in ${file.path} starts ${what}.`, installRemedy(client));
  const files = [interpreter, script].map((path) => facts.programs.get(path)?.real ?? null);
  const inside = files.find((real) => real !== null && isBelow(real, facts.project_real));
  if (inside !== undefined) return at('hook_in_project', `${inside}, which is in the project`);
  if (program.length !== 2 || !interpreter.startsWith('/') || !HOOK_PROGRAM.test(script))
    return at('hook_program', `${program.join(' ')}, and not the hook program that an installation writes`);
  if (files.includes(null)) return at('hook_program', `${program.join(' ')}, which is not there`);
  const hash = facts.programs.get(script)?.sha256 ?? null;
  return hash !== null && hash === facts.hook_sha256
    ? null
    : at('hook_changed', `${script}, which is not the hook program of this version of Turnpike`);
}

const isBelow = (path: string, folder: string): boolean => path === folder || path.startsWith(`${folder}/`);

const startsIn = (client: Client, files: readonly SettingsFile[]): readonly HookStart[] =>
  files.flatMap((file) =>
    textsOf(file).flatMap((text) => {
      const found = findHookCommand(text, client);
      return found === null ? [] : [{ file, program: found.program }];
    }),
  );

/** Every text of a file that may be a command. */
function textsOf({ kind, path, text }: SettingsFile): readonly string[] {
  if (text === null) return [];
  if (kind === 'script') return [CLINE_SCRIPT.exec(text)?.[1] ?? ''];
  if (!/\.(?:jsonc?|toml)$/.test(path)) return [];
  const found = path.endsWith('.toml') ? readToml(text) : readCommentedObject(text);
  if (found === null) return [];
  const { hook } = found;
  const words = Array.isArray(hook) ? hook.filter((word) => typeof word === 'string') : [];
  return kind === 'plugin_options' ? [commandLine(words)] : textsIn(found);
}

function textsIn(value: Json): readonly string[] {
  if (typeof value === 'string') return [value];
  if (Array.isArray(value)) return (value as readonly Json[]).flatMap(textsIn);
  return isJsonObject(value) ? Object.values(value).flatMap(textsIn) : [];
}
