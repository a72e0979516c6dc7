// Claude Code: what lets a call pass without a decision.

import type { JsonObject } from '../../../core/contract/json.js';
import { noteFinding, bypassFinding, type ClientFacts, type ClientFinding } from './client-facts.js';
import {
  hookForm,
  hookMissing,
  installRemedy,
  isAtLeast,
  missingEvents,
  otherHooks,
  ownHandlers,
  readSettings,
  versionFindings,
} from './findings.js';
import { findHookCommand } from './hook-command-line.js';
import { bestOf, hasOtherMembers, matchesAll, objectIn, textIn } from './hook-handlers.js';
import type { HookHandler, ReadSettings } from './hook-handlers.js';
import { readJsonObject } from './read-commented-json.js';

/** The first version with `onFailure`. Older ones ignore it, and execute a call whose hook fails. */
const VERSION_LEAST = '2.1.295';
const GROUP_MEMBERS = ['matcher', 'hooks'];
const COMMAND_MEMBERS = ['type', 'command', 'timeout', 'onFailure', 'statusMessage'];
const HTTP_MEMBERS = ['type', 'url', 'timeout', 'onFailure', 'statusMessage', 'headers', 'allowedEnvVars'];

/** The tools of its own that the strong profile denies. */
export const CLAUDE_TOOLS = [
  'Agent',
  'Bash',
  'BashOutput',
  'Edit',
  'Glob',
  'Grep',
  'KillShell',
  'LS',
  'Monitor',
  'MultiEdit',
  'NotebookEdit',
  'NotebookRead',
  'PowerShell',
  'Read',
  'Skill',
  'Task',
  'WebFetch',
  'WebSearch',
  'Write',
] as const;

const EVENTS = [
  ['PostToolUse', 'outcomes_unreported', 'outcomes of calls stay unknown'],
  ['PostToolUseFailure', 'failures_unreported', 'outcomes of failed calls stay unknown'],
  ['SessionStart', 'start_unreported', 'the client is checked at the first call only, and never if that uses HTTP'],
  ['SessionEnd', 'end_unreported', 'a session stays open until its idle time ends'],
] as const;

const HTTP_UNCOUNTED = noteFinding(
  'claude.http_uncounted',
  'Its hook uses HTTP: calls that it denies while the service is away are counted nowhere.',
  'Install the hook as a command, which counts them, where nothing keeps you from it.',
);

export function judgeClaudeCode(facts: ClientFacts): readonly ClientFinding[] {
  const files = facts.files.filter(({ kind }) => kind === 'settings');
  const { settings, findings } = readSettings(facts, files, readJsonObject);
  return [
    ...judgeVersion(facts),
    ...findings,
    ...(facts.profile === 'gate' ? judgeGate(settings) : judgeStrong(facts, settings)),
    ...versionFindings(facts),
  ];
}

function judgeVersion({ version, profile }: ClientFacts): readonly ClientFinding[] {
  if (profile === 'strong' || (version !== null && isAtLeast(version, VERSION_LEAST))) return [];
  const remedy = `Install Claude Code ${VERSION_LEAST} or later.`;
  return [
    version === null
      ? bypassFinding('claude.version_unknown', 'The version of Claude Code could not be found out.', remedy)
      : bypassFinding('claude.version', `Claude Code ${version} executes a call whose hook fails.`, remedy),
  ];
}

function judgeGate(settings: readonly ReadSettings[]): readonly ClientFinding[] {
  const managedOnly = settings.some(
    ({ file, settings: found }) => file.level === 'managed' && found['allowManagedHooksOnly'] === true,
  );
  const counting = settings.filter(({ file }) => !managedOnly || file.level === 'managed');
  const own = ownHandlers('claude-code', counting, 'PreToolUse');
  const problems = bestOf(own, problemsOf);
  return [
    ...disabled(settings),
    ...(problems ?? [hookMissing('claude-code', 'PreToolUse')]),
    ...(own.some(({ handler }) => handler['type'] === 'http') ? [HTTP_UNCOUNTED] : []),
    ...missingEvents('claude-code', counting, EVENTS),
    ...otherHooks('claude-code', settings, 'PreToolUse'),
  ];
}

const disabled = (settings: readonly ReadSettings[]): readonly ClientFinding[] =>
  settings
    .filter(({ settings: found }) => found['disableAllHooks'] !== undefined && found['disableAllHooks'] !== false)
    .map(({ file }) =>
      bypassFinding('claude.hooks_disabled', `${file.path} has disableAllHooks.`, 'Remove disableAllHooks from it.'),
    );

function problemsOf({ file, group, handler }: HookHandler): readonly ClientFinding[] {
  const form = (id: string, why: string) => hookForm('claude-code', id, file, why);
  const isHttp = handler['type'] === 'http';
  const isCommand =
    handler['type'] === 'command' && findHookCommand(textIn(handler, 'command'), 'claude-code') !== null;
  const members = isHttp ? HTTP_MEMBERS : COMMAND_MEMBERS;
  const hasOthers = hasOtherMembers(group, GROUP_MEMBERS) || hasOtherMembers(handler, members);
  return [
    ...(matchesAll(group['matcher']) ? [] : [form('hook_matcher', 'matches only some tools')]),
    ...(handler['onFailure'] === 'block' ? [] : [form('hook_fails_open', 'has no onFailure "block"')]),
    ...(isHttp || isCommand ? [] : [form('hook_command', 'has another command than the one that was installed')]),
    ...(hasOthers ? [form('hook_members', 'has members that could limit it')] : []),
  ];
}

function judgeStrong(facts: ClientFacts, settings: readonly ReadSettings[]): readonly ClientFinding[] {
  const denied = settings.flatMap(({ settings: found }) => deniedTools(found));
  const left = CLAUDE_TOOLS.filter((tool) => !denied.includes(tool));
  const servers = facts.files.find(
    ({ kind, level, text }) => kind === 'servers' && level === 'project' && text !== null,
  );
  const found = servers?.text == null ? null : readJsonObject(servers.text);
  const flag = noteFinding(
    'claude.tools_flag',
    'Settings deny tools by their names; a later version may have others.',
    'Start it as `claude --tools "" --strict-mcp-config --mcp-config .mcp.json`, which leaves only tools of that file.',
  );
  const missing = noteFinding(
    'claude.server_missing',
    'No .mcp.json of the project has the server "turnpike".',
    `${installRemedy('claude-code')} Give it --profile strong.`,
  );
  return [
    ...(left.length === 0
      ? []
      : [
          bypassFinding(
            'claude.native_tools',
            `The settings deny not every native tool: ${left.join(', ')} are left.`,
            `${installRemedy('claude-code')} Give it --profile strong.`,
          ),
        ]),
    ...(Object.hasOwn(objectIn(found ?? {}, 'mcpServers'), 'turnpike') ? [] : [missing]),
    flag,
  ];
}

const deniedTools = (settings: JsonObject): readonly unknown[] => {
  const { deny } = objectIn(settings, 'permissions');
  return Array.isArray(deny) ? deny : [];
};
