// Gemini CLI: what lets a call pass without a decision.

import type { Json } from '../../../core/contract/json.js';
import { noteFinding, bypassFinding, type ClientFacts, type ClientFinding } from './client-facts.js';
import {
  hookForm,
  hookMissing,
  installRemedy,
  missingEvents,
  otherHooks,
  ownHandlers,
  readSettings,
  versionFindings,
} from './findings.js';
import { findHookCommand } from './hook-command-line.js';
import { bestOf, hasOtherMembers, matchesAll, objectIn, textIn } from './hook-handlers.js';
import type { HookHandler, ReadSettings } from './hook-handlers.js';
import { readCommentedObject } from './read-commented-json.js';

const GROUP_MEMBERS = ['matcher', 'hooks', 'sequential'];
const HANDLER_MEMBERS = ['type', 'command', 'timeout', 'name', 'description'];
const TIMEOUT_MS = 60_000;

const EVENTS = [
  ['AfterTool', 'outcomes_unreported', 'outcomes of calls stay unknown'],
  ['SessionStart', 'start_unreported', 'the client is checked at the first call only'],
  ['SessionEnd', 'end_unreported', 'a session stays open until its idle time ends'],
] as const;

export function judgeGeminiCli(facts: ClientFacts): readonly ClientFinding[] {
  const { settings, findings } = readSettings(facts, facts.files, readCommentedObject);
  return [
    ...findings,
    ...(facts.profile === 'gate' ? judgeGate(settings) : judgeStrong(settings)),
    ...versionFindings(facts),
  ];
}

function judgeGate(settings: readonly ReadSettings[]): readonly ClientFinding[] {
  const own = ownHandlers('gemini-cli', settings, 'BeforeTool');
  const names = settings.flatMap(({ settings: found }) => disabledNames(found['hooksConfig'], found['hooks']));
  const problems = bestOf(own, (found) => problemsOf(found, names));
  return [
    ...disabled(settings),
    ...(problems ?? [hookMissing('gemini-cli', 'BeforeTool')]),
    ...folderTrust(settings, own),
    ...missingEvents('gemini-cli', settings, EVENTS),
    ...otherHooks('gemini-cli', settings, 'BeforeTool'),
  ];
}

/** The switches of several versions: any of them may apply. */
const disabled = (settings: readonly ReadSettings[]): readonly ClientFinding[] =>
  settings
    .filter(({ settings: found }) =>
      [
        objectIn(found, 'hooksConfig')['enabled'],
        objectIn(found, 'hooks')['enabled'],
        objectIn(found, 'tools')['enableHooks'],
      ].includes(false),
    )
    .map(({ file }) =>
      bypassFinding('gemini.hooks_disabled', `${file.path} switches hooks off.`, 'Remove that setting.'),
    );

const disabledNames = (...values: readonly (Json | undefined)[]): readonly Json[] =>
  values.flatMap((value) => {
    const { disabled: names } = objectIn({ value: value ?? null }, 'value');
    return Array.isArray(names) ? (names as readonly Json[]) : [];
  });

function problemsOf({ file, group, handler }: HookHandler, names: readonly Json[]): readonly ClientFinding[] {
  const form = (id: string, why: string) => hookForm('gemini-cli', id, file, why);
  const text = textIn(handler, 'command');
  const command = findHookCommand(text, 'gemini-cli');
  const timeout = handler['timeout'] ?? TIMEOUT_MS;
  const isLate = command?.wrapped_s != null && !(typeof timeout === 'number' && timeout > command.wrapped_s * 1_000);
  const isDisabled = names.includes(text) || names.includes(textIn(handler, 'name') || text);
  const hasOthers = hasOtherMembers(group, GROUP_MEMBERS) || hasOtherMembers(handler, HANDLER_MEMBERS);
  return [
    ...(matchesAll(group['matcher']) ? [] : [form('hook_matcher', 'matches only some tools')]),
    ...(handler['type'] === 'command' && command !== null
      ? []
      : [form('hook_command', 'has another command than the one that was installed')]),
    ...(command !== null && command.wrapped_s === null
      ? [form('hook_fails_open', 'has no `timeout N HOOK || { echo ... >&2; exit 2; }` around it')]
      : []),
    ...(isLate ? [form('hook_timeout', 'has no longer time than the command in it needs to fail')] : []),
    ...(isDisabled ? [form('hooks_disabled', 'is in the list of disabled hooks')] : []),
    ...(hasOthers ? [form('hook_members', 'has members that could limit it')] : []),
  ];
}

/** Gemini CLI ignores the settings of a folder that its user has not trusted. */
function folderTrust(settings: readonly ReadSettings[], own: readonly HookHandler[]): readonly ClientFinding[] {
  const onlyProject = own.length > 0 && own.every(({ file }) => file.level === 'project');
  const isOff = settings.some(
    ({ settings: found }) => objectIn(objectIn(found, 'security'), 'folderTrust')['enabled'] === false,
  );
  if (!onlyProject || isOff) return [];
  return [
    noteFinding(
      'gemini.folder_trust',
      'The hook is in the settings of the project, which Gemini CLI ignores in a folder that is not trusted.',
      'Trust the folder, or run `turnpike agents install gemini-cli --level user`.',
    ),
  ];
}

function judgeStrong(settings: readonly ReadSettings[]): readonly ClientFinding[] {
  const lists = settings.flatMap(({ file, settings: found }) => {
    const { core } = objectIn(found, 'tools');
    return core === undefined ? [] : [{ file, core }];
  });
  const isRight = (core: Json): boolean =>
    Array.isArray(core) &&
    core.length > 0 &&
    (core as readonly Json[]).every((name) => typeof name === 'string' && name.startsWith('mcp_turnpike_'));
  if (lists.length > 0 && lists.every(({ core }) => isRight(core))) return [];
  return [
    bypassFinding(
      'gemini.native_tools',
      'tools.core does not name only tools of Turnpike (mcp_turnpike_...): native tools are left.',
      `${installRemedy('gemini-cli')} Give it --profile strong.`,
    ),
  ];
}
