// Codex: what lets a call pass without a decision. It runs no hook that its user has not trusted, without a word about
// it; and no hook sees what a model types into a shell that a call has opened.

import type { JsonObject } from '../../../core/contract/json.js';
import { noteFinding, bypassFinding, type ClientFacts, type ClientFinding } from './client-facts.js';
import { codexTrustHash, codexTrustKey } from './codex-trust.js';
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
import { readJsonObject } from './read-commented-json.js';
import { readToml } from './read-toml.js';

const GROUP_MEMBERS = ['matcher', 'hooks'];
const HANDLER_MEMBERS = ['type', 'command', 'timeout', 'async', 'statusMessage'];
const TIMEOUT_S = 600;

const EVENTS = [
  ['PostToolUse', 'outcomes_unreported', 'outcomes of calls stay unknown'],
  ['SessionStart', 'start_unreported', 'the client is checked at the first call only'],
] as const;

interface CodexSettings {
  /** The config.toml files. */
  readonly configs: readonly ReadSettings[];
  readonly requirements: readonly ReadSettings[];
  /** The configs and the hooks.json files that Codex reads for this project. */
  readonly all: readonly ReadSettings[];
}

export function judgeCodex(facts: ClientFacts): readonly ClientFinding[] {
  const ofKind = (kind: string) => facts.files.filter((file) => file.kind === kind);
  const configs = readSettings(facts, ofKind('settings'), readToml);
  const hooks = readSettings(facts, ofKind('hooks'), readJsonObject);
  const requirements = readSettings(facts, ofKind('requirements'), readToml);
  // Codex ignores the settings of a project that its user has not trusted.
  const counts = ({ file }: ReadSettings): boolean =>
    file.level !== 'project' || isTrustedProject(configs.settings, facts.project);
  const settings: CodexSettings = {
    configs: configs.settings.filter(counts),
    requirements: requirements.settings,
    all: [...configs.settings, ...hooks.settings].filter(counts),
  };
  return [
    ...[configs, hooks, requirements].flatMap(({ findings }) => findings),
    ...judgeShell(settings),
    ...(facts.profile === 'gate' ? judgeGate(settings) : judgeStrong(settings)),
    ...versionFindings(facts),
  ];
}

const isTrustedProject = (configs: readonly ReadSettings[], project: string): boolean =>
  configs.some(
    ({ file, settings }) =>
      file.level === 'user' && objectIn(objectIn(settings, 'projects'), project)['trust_level'] === 'trusted',
  );

function judgeShell({ configs }: CodexSettings): readonly ClientFinding[] {
  const values = configs.flatMap(({ settings }) => [
    objectIn(settings, 'features')['shell_tool'],
    ...Object.keys(objectIn(settings, 'profiles')).map(
      (name) => objectIn(objectIn(objectIn(settings, 'profiles'), name), 'features')['shell_tool'],
    ),
  ]);
  const isOff = values.includes(false) && values.every((value) => value === false || value === undefined);
  if (isOff) return [];
  return [
    bypassFinding(
      'codex.shell_tool',
      'The shell tool is on: no hook sees what the model writes into a shell that it has opened (write_stdin).',
      'Set `shell_tool = false` in [features] of config.toml, and start Codex without `--enable shell_tool`.',
    ),
  ];
}

function judgeGate({ configs, requirements, all }: CodexSettings): readonly ClientFinding[] {
  const managedOnly = requirements.some(({ settings }) => settings['allow_managed_hooks_only'] === true);
  const counting = all.filter(({ file }) => !managedOnly || file.level === 'managed');
  const states = configs.filter(({ file }) => file.level === 'user').map(({ settings }) => hookStates(settings));
  const problems = bestOf(ownHandlers('codex', counting, 'PreToolUse'), (found) => problemsOf(found, states));
  return [
    ...configs
      .filter(({ settings }) => objectIn(settings, 'features')['hooks'] === false)
      .map(({ file }) =>
        bypassFinding('codex.hooks_disabled', `${file.path} has hooks = false in [features].`, 'Remove it.'),
      ),
    ...(problems ?? [hookMissing('codex', 'PreToolUse')]),
    ...missingEvents('codex', counting, EVENTS),
    ...otherHooks('codex', counting, 'PreToolUse'),
  ];
}

const hookStates = (config: JsonObject): JsonObject => objectIn(objectIn(config, 'hooks'), 'state');

function problemsOf(found: HookHandler, states: readonly JsonObject[]): readonly ClientFinding[] {
  const { file, group, handler } = found;
  const form = (id: string, why: string) => hookForm('codex', id, file, why);
  const command = findHookCommand(textIn(handler, 'command'), 'codex');
  const timeout = handler['timeout'] ?? TIMEOUT_S;
  const hasOthers = hasOtherMembers(group, GROUP_MEMBERS) || hasOtherMembers(handler, HANDLER_MEMBERS);
  const isLate = command?.wrapped_s != null && !(typeof timeout === 'number' && timeout > command.wrapped_s);
  return [
    ...(matchesAll(group['matcher']) ? [] : [form('hook_matcher', 'matches only some tools')]),
    ...(handler['type'] === 'command' && command !== null
      ? []
      : [form('hook_command', 'has another command than the one that was installed')]),
    ...(command !== null && command.wrapped_s === null
      ? [form('hook_fails_open', 'has no `timeout N HOOK || { echo ... >&2; exit 2; }` around it')]
      : []),
    ...(isLate ? [form('hook_timeout', 'has no longer time than the command in it needs to fail')] : []),
    ...(hasOthers || handler['async'] === true ? [form('hook_members', 'has members that could limit it')] : []),
    ...(file.level === 'managed' ? [] : judgeTrust(found, states)),
  ];
}

function judgeTrust({ file, group, handler, place }: HookHandler, states: readonly JsonObject[]): ClientFinding[] {
  const state = states.map((one) => objectIn(one, codexTrustKey(file.path, 'PreToolUse', place)));
  const hash = state.map((one) => one['trusted_hash']).find((one) => one !== undefined);
  const remedy = `${installRemedy('codex')} Or trust the hook in Codex with /hooks.`;
  if (state.some((one) => one['enabled'] === false))
    return [bypassFinding('codex.hooks_disabled', `The hook in ${file.path} is switched off in config.toml.`, remedy)];
  if (hash === undefined)
    return [
      bypassFinding('codex.hook_untrusted', `Codex does not run the hook in ${file.path}: it is not trusted.`, remedy),
    ];
  if (hash !== codexTrustHash('PreToolUse', group['matcher'], handler))
    return [bypassFinding('codex.hook_edited', `The hook in ${file.path} was changed after it was trusted.`, remedy)];
  return [];
}

function judgeStrong({ configs }: CodexSettings): readonly ClientFinding[] {
  const modes = configs.flatMap(({ settings }) => settings['sandbox_mode'] ?? []);
  const isReadOnly = modes.length > 0 && modes.every((mode) => mode === 'read-only');
  return [
    ...(isReadOnly
      ? []
      : [
          bypassFinding(
            'codex.native_tools',
            'The sandbox is not read-only: apply_patch can change files.',
            'Set `sandbox_mode = "read-only"` in config.toml.',
          ),
        ]),
    noteFinding(
      'codex.not_wholly',
      'Codex cannot switch off all of its own tools: view_image and tool_search stay, and apply_patch is offered and fails.',
      'Use the profile gate with it, or accept that it reads images.',
    ),
  ];
}
