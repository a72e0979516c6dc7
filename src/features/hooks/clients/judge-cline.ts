// Cline: what lets a call pass without a decision.

import { noteFinding, type ClientFacts, type ClientFinding } from './client-facts.js';
import { hookForm, hookMissing, installRemedy, strongFinding, versionFindings } from './findings.js';
import { findHookCommand, CLINE_SCRIPT } from './hook-command-line.js';

/** Cline runs an executable for each event, and stops a call only if that writes a body. */
export function judgeCline(facts: ClientFacts): readonly ClientFinding[] {
  const script = facts.files.find(({ path }) => path.endsWith('/PreToolUse'));
  const outcome = facts.files.find(({ path }) => path.endsWith('/PostToolUse'));
  return [
    ...strongFinding(facts),
    ...(script?.text == null && script?.problem == null ? [hookMissing('cline', 'PreToolUse')] : []),
    ...(script !== undefined && isThereAndWrong(script.text, script.problem)
      ? [
          hookForm(
            'cline',
            'hook_fails_open',
            script,
            'is not the script that was installed: its failures stop nothing',
          ),
        ]
      : []),
    ...(script?.text != null && !script.executable
      ? [hookForm('cline', 'hook_not_executable', script, 'is not executable, so Cline does not run it')]
      : []),
    ...(outcome?.text == null
      ? [
          noteFinding(
            'cline.outcomes_unreported',
            'There is no hook PostToolUse: outcomes stay unknown.',
            installRemedy('cline'),
          ),
        ]
      : []),
    noteFinding(
      'cline.reason_not_told',
      'Cline ends its run after a denied call, and does not give the reason to the model.',
      'Expect that a denial ends the work of Cline.',
    ),
    ...versionFindings(facts),
  ];
}

const isThereAndWrong = (text: string | null, problem: string | null): boolean =>
  problem !== null || (text !== null && !isClineScript(text));

const isClineScript = (text: string): boolean => {
  const line = CLINE_SCRIPT.exec(text)?.[1];
  return line !== undefined && findHookCommand(line, 'cline') !== null;
};
