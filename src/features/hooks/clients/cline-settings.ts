// The settings of Cline: an executable for each event. It stops a call only if that writes a body.

import {
  type ClientFacts,
  type ClientFinding,
  type SettingsFile,
  findingIf,
  hookForm,
  hookMissing,
  missingNote,
  note,
} from './judge-hooks.js';
import { below, ofUser, type ClientSettings, EditProblem, type Editor } from './client-settings.js';
import { CLINE_SCRIPT, clineScript, findHookCommand, hookWords, mentionsHook } from './hook-command-line.js';

function judgeScripts({ files }: ClientFacts): readonly ClientFinding[] {
  const outcome = files.find(({ path }) => path.endsWith('/PostToolUse'));
  return [
    ...judgeScript(files.find(({ path }) => path.endsWith('/PreToolUse'))),
    ...findingIf(
      outcome?.text == null,
      missingNote('cline', 'outcomes_unreported', 'PostToolUse: outcomes stay unknown'),
    ),
    note(
      'cline',
      'reason_not_told',
      'Cline ends its run after a denied call, and does not give the reason to the model.',
      'Expect that a denial ends the work of Cline.',
    ),
  ];
}

function judgeScript(script: SettingsFile | undefined): readonly ClientFinding[] {
  if (script === undefined || (script.text === null && script.problem === null))
    return [hookMissing('cline', 'PreToolUse')];
  const isRight = script.problem === null && isClineScript(script.text ?? '');
  const wrong = 'is not the script that was installed: its failures stop nothing';
  return [
    ...findingIf(!isRight, hookForm('cline', 'hook_fails_open', script, wrong)),
    ...findingIf(
      script.text !== null && !script.executable,
      hookForm('cline', 'hook_not_executable', script, 'is not executable, so Cline does not run it'),
    ),
  ];
}

const isClineScript = (text: string): boolean => {
  const line = CLINE_SCRIPT.exec(text)?.[1];
  return line !== undefined && findHookCommand(line, 'cline') !== null;
};

const EXECUTABLE_MODE = 0o700;

const scriptEditor = (name: string): Editor => ({
  levels: ['user'],
  userFile: `hooks/${name}`,
  mode: EXECUTABLE_MODE,
  add: (text, target) => {
    if (text !== null) throw new EditProblem('is a hook of its own, and Cline runs only one: move it away first');
    return clineScript(hookWords(target));
  },
  remove: (text) => (mentionsHook(text, 'cline') ? null : text),
});

export const CLINE_SETTINGS: ClientSettings = {
  userFolder: ({ userHome }) => `${userHome}/.cline`,
  files: [
    ofUser('script', 'hooks/PreToolUse'),
    ofUser('script', 'hooks/PostToolUse'),
    ofUser('servers', 'data/settings/cline_mcp_settings.json'),
  ],
  unhooked: {
    repository: [...below('.clinerules', ['workflows', 'hooks', 'skills']), '.cline', '.claude/skills', '.agents'],
    readsAbove: false,
    user: ({ userHome }, folder) => [
      ...below(folder, ['skills', 'agents', 'plugins', 'cron', 'hooks', 'data/workflows']),
      ...below(`${userHome}/Documents/Cline`, ['Hooks', 'Workflows']),
      `${userHome}/.agents/skills`,
    ],
    members: ['mcpServers'],
  },
  readers: [],
  judgeGate: judgeScripts,
  editors: { gate: [scriptEditor('PreToolUse'), scriptEditor('PostToolUse')], strong: [] },
};
