// What is known of a client on this machine, and what a judgement finds in it. Judges the hooks in settings:
// `hooks.EVENT` is a list of groups, each with a matcher and a list of handlers. What must be right of a handler
// differs between clients, so each has a table of checks.

import type { JsonObject } from '../../../core/contract/json.js';
import type { ClientFile, ProgramFile } from '../client-files/client-file.js';
import type { Client } from '../hook-event.js';
import { CLIENT_NAMES } from './client-names.js';
import { findHookCommand, mentionsHook, type FoundCommand } from './hook-command-line.js';
import { objectIn, objectsIn, textIn } from './read-settings.js';

/** Whose settings a file has. Clients merge the levels in their own ways. */
export type SettingsLevel = 'user' | 'project' | 'local' | 'managed';

/** `gate`: hooks ask about each native tool. `strong`: the client has the tools of Turnpike and no others. */
export const PROFILES = ['gate', 'strong'] as const;
/** One of `PROFILES`. */
export type Profile = (typeof PROFILES)[number];

/** What a file of a client is. */
export type SettingsKind =
  'settings' | 'hooks' | 'requirements' | 'plugin' | 'plugin_options' | 'dependency' | 'script' | 'servers';

/** Where a file of a client is. */
export interface SettingsPlace {
  readonly kind: SettingsKind;
  readonly level: SettingsLevel;
  readonly path: string;
  /** The folder that the file must be in after links are resolved. */
  readonly root: string;
}

/** A file of a client. */
export interface SettingsFile extends SettingsPlace, ClientFile {}

/** Settings that were read. */
export interface ReadSettings {
  readonly file: SettingsFile;
  readonly settings: JsonObject;
}

/** A command of settings that starts the hook. */
export interface HookStart {
  readonly file: SettingsFile;
  /** The interpreter and the script. */
  readonly program: readonly string[];
}

/** What a client runs without a hook. */
export interface UnhookedItems {
  /** Of the repository, relative to the project. */
  readonly repository: readonly string[];
  /** Of the user, as absolute paths. */
  readonly user: readonly string[];
  /** Whether all folders of the project were looked at. */
  readonly isComplete: boolean;
}

/** Everything that a judgement looks at. */
export interface ClientFacts extends UnhookedItems {
  readonly client: Client;
  /** Null if it could not be found out. */
  readonly version: string | null;
  readonly profile: Profile;
  readonly project: string;
  /** The same without links. */
  readonly project_real: string;
  readonly files: readonly SettingsFile[];
  /** The SHA-256 of the plugin that this package ships. */
  readonly plugin_sha256: string;
  /** The SHA-256 of the hook program that this package ships. */
  readonly hook_sha256: string;
  readonly starts: readonly HookStart[];
  /** What they start, by its path. */
  readonly programs: ReadonlyMap<string, ProgramFile>;
  /** The variables of the environment that change what a client loads. */
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** A setting by which a client could act without a decision (`opens`), or that is worth knowing (`note`). */
export interface ClientFinding {
  /** Lower case letters, digits, `_` and `.`; stable. */
  readonly id: string;
  readonly severity: 'opens' | 'note';
  readonly message: string;
  /** What the user does about it. */
  readonly remedy: string;
}

/** The form that the hooks of a client must have. */
export interface HookForm {
  readonly client: Client;
  /** The event before a call. */
  readonly event: string;
  /** What may be wrong with its handlers; the findings have this order. */
  readonly checks: readonly HookCheck[];
  /** What else may be wrong with a handler. */
  readonly judgeFurther?: (found: HookHandler, settings: readonly ReadSettings[]) => readonly ClientFinding[];
  /** Further events, with the id of the note and the effect if there is no hook for one: then the ledger knows less. */
  readonly reported: readonly (readonly [event: string, id: string, effect: string])[];
  /** How a note about such an event names it; absent: `for EVENT`. */
  readonly inNote?: (event: string) => string;
  /** Whether an event has handlers without groups. */
  readonly isFlat?: true;
  /** Whether settings of the administrator switch off all hooks but theirs. */
  readonly isManagedOnly?: (settings: readonly ReadSettings[]) => boolean;
  /** A file that switches hooks off: what it does, and the remedy. */
  readonly switchedOff?: (read: ReadSettings) => readonly [text: string, remedy: string] | null;
  /** Notes about the hooks that were found. */
  readonly notesOf?: (own: readonly HookHandler[], settings: readonly ReadSettings[]) => readonly ClientFinding[];
  /**
   * Which other hooks of the event are found, because each can change the input after the decision: those that the
   * client runs, or all; absent: the client runs none that can.
   */
  readonly others?: 'run' | 'all';
}

/** One handler of an event. */
export interface HookHandler extends ReadSettings {
  /** The number of its group, and its number in the group. */
  readonly place: readonly [number, number];
  /** The handler itself, if there are no groups. */
  readonly group: JsonObject;
  readonly handler: JsonObject;
  /** The hook in its command; null for any other command. */
  readonly command: FoundCommand | null;
}

/** The id and the text of a finding, and whether a handler has it. */
type HookCheck = readonly [
  id: string,
  text: string,
  isWrong: (found: HookHandler, settings: readonly ReadSettings[]) => boolean,
];

/** Events that several clients have under their own names. */
export const OUTCOMES = ['outcomes_unreported', 'outcomes of calls stay unknown'] as const;
export const START = ['start_unreported', 'the client is checked at the first call only'] as const;
export const END = ['end_unreported', 'a session stays open until its idle time ends'] as const;

export const SOME_TOOLS: HookCheck = [
  'hook_matcher',
  'matches only some tools',
  ({ group: { matcher } }) => !(matcher == null || (typeof matcher === 'string' && ['', '*', '.*'].includes(matcher))),
];

/** @param isHook whether a handler is the hook in a form of its client */
export const otherCommand = (isHook: (found: HookHandler) => boolean): HookCheck => [
  'hook_command',
  'has another command than the one that was installed',
  (found) => !isHook(found),
];

export const isInstalledCommand = ({ handler, command }: HookHandler): boolean =>
  handler['type'] === 'command' && command !== null;

/** For clients that stop a call only after code 2 with a message. */
export const NOT_WRAPPED: HookCheck = [
  'hook_fails_open',
  'has no `timeout N HOOK || { echo ... >&2; exit 2; }` around it',
  ({ command }) => command?.wrapped_s === null,
];

/** @param timeoutDefault of a handler that states none */
export const lateTimeout = (timeoutDefault: number, unitsPerSecond: number): HookCheck => [
  'hook_timeout',
  'has no longer time than the command in it needs to fail',
  ({ handler, command }) => {
    const timeout = handler['timeout'] ?? timeoutDefault;
    return command?.wrapped_s != null && !(typeof timeout === 'number' && timeout > command.wrapped_s * unitsPerSecond);
  },
];

/** Members that are not among the known ones could limit when a hook runs. */
export const otherMembers = (
  groupMembers: readonly string[],
  handlerMembers: (handler: JsonObject) => readonly string[],
  isLimited: (handler: JsonObject) => boolean = () => false,
): HookCheck => [
  'hook_members',
  'has members that could limit it',
  ({ group, handler }) =>
    Object.keys(group).some((name) => !groupMembers.includes(name)) ||
    Object.keys(handler).some((name) => !handlerMembers(handler).includes(name)) ||
    isLimited(handler),
];

/** What is wrong with the hooks of a client. Of several hooks, one that is right is enough. */
export function judgeHooks(form: HookForm, settings: readonly ReadSettings[]): readonly ClientFinding[] {
  const { client, event, others, inNote = (name: string) => `for ${name}` } = form;
  const isManagedOnly = form.isManagedOnly?.(settings) ?? false;
  const run = settings.filter(({ file }) => !isManagedOnly || file.level === 'managed');
  const own = ownHandlers(form, run, event);
  const [problems] = own
    .map((found) => problemsOf(form, found, settings))
    .sort((one, other) => one.length - other.length);
  return [
    ...settings.flatMap((read) => {
      const off = form.switchedOff?.(read) ?? null;
      return off === null ? [] : [opening(client, 'hooks_disabled', ...off)];
    }),
    ...(problems ?? [hookMissing(client, event)]),
    ...(form.notesOf?.(own, settings) ?? []),
    ...form.reported
      .filter(([name]) => ownHandlers(form, run, name).length === 0)
      .map(([name, id, effect]) => missingNote(client, id, `${inNote(name)}: ${effect}`)),
    ...(others === undefined ? [] : otherHooks(form, others === 'all' ? settings : run)),
  ];
}

const problemsOf = (
  form: HookForm,
  found: HookHandler,
  settings: readonly ReadSettings[],
): readonly ClientFinding[] => [
  ...form.checks
    .filter(([, , isWrong]) => isWrong(found, settings))
    .map(([id, text]) => hookForm(form.client, id, found.file, text)),
  ...(form.judgeFurther?.(found, settings) ?? []),
];

/** The handlers of an event, in the order of the file. */
const handlersOf = ({ client, isFlat }: HookForm, read: ReadSettings, event: string): readonly HookHandler[] =>
  objectsIn(objectIn(read.settings, 'hooks')[event]).flatMap(([group, groupAt]) =>
    (isFlat === true ? [[group, 0] as const] : objectsIn(group['hooks'])).map(([handler, handlerAt]) => ({
      ...read,
      group,
      handler,
      place: [groupAt, handlerAt] as const,
      command: findHookCommand(textIn(handler, 'command'), client),
    })),
  );

const ownHandlers = (form: HookForm, settings: readonly ReadSettings[], event: string): readonly HookHandler[] =>
  settings
    .flatMap((read) => handlersOf(form, read, event))
    .filter(({ handler }) => (form.isFlat === true ? hasOwnCommand : isOwnHook)(form.client, handler));

/** Another hook of the same event can change the input after the decision: then the client executes another call. */
function otherHooks(form: HookForm, settings: readonly ReadSettings[]): readonly ClientFinding[] {
  const handlers = settings.flatMap((read) => handlersOf(form, read, form.event));
  const others = handlers.filter(({ handler }) => !isOwnHook(form.client, handler));
  const paths = [...new Set(others.map(({ file }) => file.path))];
  if (paths.length === 0) return [];
  const which = `Other hooks for ${form.event} are in ${paths.join(', ')}`;
  return [
    opening(
      form.client,
      'other_hooks',
      `${which}: they can change the input of a call after it was decided.`,
      'Remove them: no setting keeps a hook from changing inputs.',
    ),
  ];
}

/** Whether a handler is the hook of a client, in whatever form. */
export const isOwnHook = (client: Client, handler: JsonObject): boolean =>
  hasOwnCommand(client, handler) || mentionsRoute(textIn(handler, 'url'), client);

const hasOwnCommand = (client: Client, handler: JsonObject): boolean =>
  mentionsHook(textIn(handler, 'command'), client);

/** Whether a text has the route of the hook over HTTP. */
export const mentionsRoute = (text: string, client: Client): boolean => text.includes(`/api/v1/hooks/${client}`);

export const installRemedy = (client: Client): string => `Run \`turnpike agents install ${client}\`.`;

/** A finding of a client that opens the gate. Without a remedy, it is the installation. */
export const opening = (
  client: Client,
  id: string,
  message: string,
  remedy = installRemedy(client),
): ClientFinding => ({
  id: findingId(client, id),
  severity: 'opens',
  message,
  remedy,
});

/** A finding of a client that is worth knowing. */
export const note = (client: Client, id: string, message: string, remedy = installRemedy(client)): ClientFinding => ({
  id: findingId(client, id),
  severity: 'note',
  message,
  remedy,
});

const findingId = (client: Client, id: string): string => `${CLIENT_NAMES[client].prefix}.${id}`;

/** A list of the finding if it applies, else of none. */
export const findingIf = (applies: boolean, finding: ClientFinding): readonly ClientFinding[] =>
  applies ? [finding] : [];

export const hookMissing = (client: Client, event: string): ClientFinding =>
  opening(
    client,
    'hook_missing',
    `No settings of ${client} have the hook of Turnpike for ${event}: no call is decided.`,
  );

/** @param which the event, and the effect */
export const missingNote = (client: Client, id: string, which: string): ClientFinding =>
  note(client, id, `There is no hook ${which}.`);

/** The hook exists, in a form that could let calls pass. */
export const hookForm = (client: Client, id: string, { path }: SettingsFile, why: string): ClientFinding =>
  opening(client, id, `The hook in ${path} ${why}.`);
