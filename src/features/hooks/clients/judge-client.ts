// What is wrong with a client on this machine: what lets a call pass without a decision, and what is worth knowing.

import { isJsonObject, type Json } from '../../../core/contract/json.js';
import { itemsText } from '../comparisons/call-coverage.js';
import type { Client } from '../hook-event.js';
import {
  type ClientFacts,
  type ClientFinding,
  type HookStart,
  type SettingsFile,
  findingIf,
  note,
  opening,
  type ReadSettings,
} from './judge-hooks.js';
import { CLIENT_NAMES } from './client-names.js';
import { CLIENT_SETTINGS } from './clients.js';
import { CLINE_SCRIPT, commandLine, findHookCommand, HOOK_PROGRAM } from './hook-command-line.js';
import { readSettingsByName } from './read-settings.js';

/** The findings about a client, those that open the gate first. */
export function judgeClient(facts: ClientFacts): readonly ClientFinding[] {
  const { judgeProgram, judgeGate, judgeStrong } = CLIENT_SETTINGS[facts.client];
  const { settings, findings } = readSettings(facts);
  const judged =
    facts.profile === 'strong' && judgeStrong !== undefined
      ? judgeStrong(facts, settings)
      : [...noStrongProfile(facts), ...judgeGate(facts, settings)];
  return [
    ...(judgeProgram?.(facts) ?? []),
    ...findings,
    ...judged,
    ...versionFindings(facts),
    ...programFindings(facts),
    ...itemFindings(facts),
  ].toSorted((one, other) => Number(one.severity === 'note') - Number(other.severity === 'note'));
}

/** Without a known setting that switches off the native tools, a client has no strong profile. */
const noStrongProfile = ({ client, profile }: ClientFacts): readonly ClientFinding[] =>
  findingIf(
    profile === 'strong',
    opening(
      client,
      'native_tools',
      `No setting is known that switches off the native tools of ${client}.`,
      'Use the profile gate with it.',
    ),
  );

/** Reads the settings files, and finds those that cannot be read: nothing is known of what they switch off. */
function readSettings({ client, files }: ClientFacts): {
  readonly settings: readonly ReadSettings[];
  readonly findings: readonly ClientFinding[];
} {
  const settings: ReadSettings[] = [];
  const findings: ClientFinding[] = [];
  for (const [kind, read] of CLIENT_SETTINGS[client].readers)
    for (const file of files.filter((one) => one.kind === kind)) {
      const found = file.text === null ? null : read(file.text);
      if (found !== null) settings.push({ file, settings: found });
      else if (file.text !== null || file.problem !== null) findings.push(unreadable(client, file));
    }
  return { settings, findings };
}

const unreadable = (client: Client, { path, problem }: SettingsFile): ClientFinding =>
  opening(
    client,
    'settings_unreadable',
    `${path} ${problem ?? 'does not have the form of settings'}: it could switch the hooks off.`,
    'Correct the file, or remove it.',
  );

/** The measurements are of one version; others may behave differently. */
function versionFindings({ client, version }: ClientFacts): readonly ClientFinding[] {
  const { measured } = CLIENT_NAMES[client];
  if (measured !== null && version === measured) return [];
  const text =
    measured === null
      ? `The hooks of ${client} were never measured, only read about.`
      : `The hooks were measured with ${client} ${measured}; this is ${version ?? 'an unknown version'}.`;
  const remedy = 'Try that a denied call is not executed before you rely on it (docs/trust.md).';
  return [note(client, 'not_measured', text, remedy)];
}

/**
 * What is wrong with the programs that settings start as the hook. Each must be the hook program of this version,
 * outside of the project: what is in the project, an agent may be allowed to change. The settings may have none:
 * another finding says so.
 */
function programFindings(facts: ClientFacts): readonly ClientFinding[] {
  const found = facts.starts.flatMap((start) => programFinding(start, facts) ?? []);
  return [...new Map(found.map((finding) => [finding.message, finding])).values()];
}

function programFinding({ file, program }: HookStart, { client, ...facts }: ClientFacts): ClientFinding | null {
  const [interpreter = '', script = ''] = program;
  const at = (id: string, what: string): ClientFinding =>
    opening(client, id, `The hook in ${file.path} starts ${what}.`);
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

/** The commands of settings that start the hook. */
export const findHookStarts = (client: Client, files: readonly SettingsFile[]): readonly HookStart[] =>
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
  const found = readSettingsByName(path, text);
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

/** How many names a message has. */
const NAMES_MAX = 8;

/** No hook is asked about what the repository itself brings along, nor about what the user has. */
const itemFindings = ({ client, repository, user, isComplete }: ClientFacts): readonly ClientFinding[] => [
  ...itemsFinding(client, 'repository', repository),
  ...itemsFinding(client, 'user', user),
  ...findingIf(
    !isComplete,
    note(
      client,
      'folders',
      'The project has more or deeper folders than are looked at, links to others, or some that cannot be read: ' +
        'what they have that runs without a hook is not known.',
      'Start the client in a smaller folder, or look at them yourself.',
    ),
  ),
];

const itemsFinding = (
  client: Client,
  whose: 'repository' | 'user',
  items: readonly string[],
): readonly ClientFinding[] =>
  findingIf(
    items.length > 0,
    note(
      client,
      whose === 'user' ? 'user_items' : whose,
      `${itemsText(whose, items.length, items.slice(0, NAMES_MAX))}: no call of theirs is decided.`,
      'Read them before you start the client, and remove those that you do not need.',
    ),
  );
