// Findings that several clients have in common. Their ids begin with the name of the client.

import { itemsText } from '../comparisons/missing-comparisons.js';
import type { Client } from '../hook-event.js';
import { noteFinding, bypassFinding, type ClientFacts, type ClientFinding, type SettingsFile } from './client-facts.js';
import { mentionsHook } from './hook-command-line.js';
import { handlersOf, textIn, type HookHandler, type ReadSettings } from './hook-handlers.js';
import type { JsonObject } from '../../../core/contract/json.js';

/** The versions with which the behaviour of hooks was measured. */
const MEASURED: Readonly<Record<Client, string | null>> = {
  'claude-code': '2.1.330',
  codex: '0.169.0',
  'gemini-cli': '0.61.0',
  opencode: '1.18.33',
  cline: '3.0.65',
  cursor: null,
};

/** The beginning of the ids of a client. */
export const PREFIXES: Readonly<Record<Client, string>> = {
  'claude-code': 'claude',
  codex: 'codex',
  'gemini-cli': 'gemini',
  opencode: 'opencode',
  cline: 'cline',
  cursor: 'cursor',
};

export const installRemedy = (client: Client): string => `Run \`turnpike agents install ${client}\`.`;

/** Reads the settings files, and finds those that cannot be read: nothing is known of what they switch off. */
export function readSettings(
  { client }: Pick<ClientFacts, 'client'>,
  files: readonly SettingsFile[],
  read: (text: string) => JsonObject | null,
): { readonly settings: readonly ReadSettings[]; readonly findings: readonly ClientFinding[] } {
  const settings: ReadSettings[] = [];
  const findings: ClientFinding[] = [];
  for (const file of files) {
    const found = file.text === null ? null : read(file.text);
    if (found !== null) settings.push({ file, settings: found });
    else if (file.text !== null || file.problem !== null) findings.push(unreadable(client, file));
  }
  return { settings, findings };
}

const unreadable = (client: Client, { path, problem }: SettingsFile): ClientFinding =>
  bypassFinding(
    `${PREFIXES[client]}.settings_unreadable`,
    `${path} ${problem ?? 'does not have the form of settings'}: it could switch the hooks off.`,
    'Correct the file, or remove it.',
  );

/** The handlers that mention the hook of this client. */
export const ownHandlers = (client: Client, settings: readonly ReadSettings[], event: string): readonly HookHandler[] =>
  settings.flatMap((one) => handlersOf(one, event)).filter(({ handler }) => isOwn(client, handler));

const isOwn = (client: Client, handler: JsonObject): boolean =>
  mentionsHook(textIn(handler, 'command'), client) || textIn(handler, 'url').includes(`/api/v1/hooks/${client}`);

export const hookMissing = (client: Client, event: string): ClientFinding =>
  bypassFinding(
    `${PREFIXES[client]}.hook_missing`,
    `No settings of ${client} have the hook of Turnpike for ${event}: no call is decided.`,
    installRemedy(client),
  );

/** The hook exists, in a form that could let calls pass. */
export const hookForm = (client: Client, id: string, file: SettingsFile, why: string): ClientFinding =>
  bypassFinding(`${PREFIXES[client]}.${id}`, `The hook in ${file.path} ${why}.`, installRemedy(client));

/** Events without a hook, without which the ledger knows less. */
export function missingEvents(
  client: Client,
  settings: readonly ReadSettings[],
  events: readonly (readonly [event: string, id: string, effect: string])[],
): readonly ClientFinding[] {
  return events
    .filter(([event]) => ownHandlers(client, settings, event).length === 0)
    .map(([event, id, effect]) =>
      noteFinding(`${PREFIXES[client]}.${id}`, `There is no hook for ${event}: ${effect}.`, installRemedy(client)),
    );
}

/** Another hook of the same event can change the input after the decision: then the client executes another call. */
export function otherHooks(client: Client, settings: readonly ReadSettings[], event: string): readonly ClientFinding[] {
  const others = settings.flatMap((one) => handlersOf(one, event)).filter(({ handler }) => !isOwn(client, handler));
  const paths = [...new Set(others.map(({ file }) => file.path))];
  if (paths.length === 0) return [];
  return [
    bypassFinding(
      `${PREFIXES[client]}.other_hooks`,
      `Other hooks for ${event} are in ${paths.join(', ')}: they can change the input of a call after it was decided.`,
      'Remove them: no setting keeps a hook from changing inputs.',
    ),
  ];
}

/** How many names a message has. */
const NAMES_MAX = 8;

/** No hook is asked about what the repository itself brings along, nor about what the user has. */
export const itemFindings = ({ client, repository, user, looked_at_all }: ClientFacts): readonly ClientFinding[] => [
  ...itemsFinding(client, 'repository', repository),
  ...itemsFinding(client, 'user', user),
  ...(looked_at_all
    ? []
    : [
        noteFinding(
          `${PREFIXES[client]}.folders`,
          'The project has more or deeper folders than are looked at, links to others, or some that cannot be read: ' +
            'what they have that runs without a hook is not known.',
          'Start the client in a smaller folder, or look at them yourself.',
        ),
      ]),
];

const itemsFinding = (
  client: Client,
  whose: 'repository' | 'user',
  items: readonly string[],
): readonly ClientFinding[] =>
  items.length === 0
    ? []
    : [
        noteFinding(
          `${PREFIXES[client]}.${whose === 'user' ? 'user_items' : whose}`,
          `${itemsText(whose, items.length, items.slice(0, NAMES_MAX))}: no call of theirs is decided.`,
          'Read them before you start the client, and remove those that you do not need.',
        ),
      ];

/** The measurements are of one version; others may behave differently. */
export function versionFindings({ client, version }: ClientFacts): readonly ClientFinding[] {
  const measured = MEASURED[client];
  const id = `${PREFIXES[client]}.not_measured`;
  const remedy = 'Try that a denied call is not executed before you rely on it (docs/trust.md).';
  if (measured === null)
    return [noteFinding(id, `The hooks of ${client} were never measured, only read about.`, remedy)];
  if (version === measured) return [];
  const which = version === null ? 'an unknown version' : version;
  return [noteFinding(id, `The hooks were measured with ${client} ${measured}; this is ${which}.`, remedy)];
}

/** Whether a version is at least another one; false for a version that is no three numbers. */
export function isAtLeast(version: string, least: string): boolean {
  const [own, other] = [version, least].map((text) => /^(\d+)\.(\d+)\.(\d+)/.exec(text)?.slice(1).map(Number));
  if (own === undefined || other === undefined) return false;
  const at = own.findIndex((number, i) => number !== other[i]);
  // A pre-release of the version itself is older.
  if (at < 0) return !/^\d+\.\d+\.\d+-/.test(version);
  return (own[at] ?? 0) > (other[at] ?? 0);
}

/** Without a known setting that switches off the native tools, a client has no strong profile. */
export const strongFinding = ({ client, profile }: ClientFacts): readonly ClientFinding[] =>
  profile === 'gate'
    ? []
    : [
        bypassFinding(
          `${PREFIXES[client]}.native_tools`,
          `No setting is known that switches off the native tools of ${client}.`,
          'Use the profile gate with it.',
        ),
      ];
