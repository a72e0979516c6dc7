// Cursor: what lets a call pass without a decision.

import { isJsonObject, type Json } from '../../../core/contract/json.js';
import { noteFinding, type ClientFacts, type ClientFinding } from './client-facts.js';
import { hookForm, hookMissing, installRemedy, readSettings, strongFinding, versionFindings } from './findings.js';
import { findHookCommand, mentionsHook } from './hook-command-line.js';
import { bestOf, hasOtherMembers, matchesAll, objectIn, textIn, type ReadSettings } from './hook-handlers.js';
import { readJsonObject } from './read-commented-json.js';

const CURSOR_MEMBERS = ['command', 'timeout', 'failClosed', 'matcher', 'type'];

/** Cursor lets a call pass after a failure, unless the hook has `failClosed`. */
export function judgeCursor(facts: ClientFacts): readonly ClientFinding[] {
  const files = facts.files.filter(({ kind }) => kind === 'hooks');
  const { settings, findings } = readSettings(facts, files, readJsonObject);
  const own = settings.flatMap((one) => entriesOf(one, 'preToolUse').map((entry) => ({ ...one, entry })));
  const problems = bestOf(own, ({ file, entry }) => {
    const form = (id: string, why: string) => hookForm('cursor', id, file, why);
    const isHook = findHookCommand(textIn(entry, 'command'), 'cursor') !== null;
    return [
      ...(entry['failClosed'] === true ? [] : [form('hook_fails_open', 'has no "failClosed": true')]),
      ...(matchesAll(entry['matcher']) ? [] : [form('hook_matcher', 'matches only some tools')]),
      ...(isHook ? [] : [form('hook_command', 'has another command than the one that was installed')]),
      ...(hasOtherMembers(entry, CURSOR_MEMBERS) ? [form('hook_members', 'has members that could limit it')] : []),
    ];
  });
  const hasOutcomes = settings.some((one) => entriesOf(one, 'postToolUse').length > 0);
  return [
    ...findings,
    ...strongFinding(facts),
    ...(problems ?? [hookMissing('cursor', 'preToolUse')]),
    ...(hasOutcomes
      ? []
      : [
          noteFinding(
            'cursor.outcomes_unreported',
            'There is no hook postToolUse: outcomes stay unknown.',
            installRemedy('cursor'),
          ),
        ]),
    ...versionFindings(facts),
  ];
}

const entriesOf = ({ settings }: ReadSettings, event: string) => {
  const entries = objectIn(settings, 'hooks')[event];
  return (Array.isArray(entries) ? (entries as readonly Json[]) : [])
    .filter(isJsonObject)
    .filter((entry) => mentionsHook(textIn(entry, 'command'), 'cursor'));
};
