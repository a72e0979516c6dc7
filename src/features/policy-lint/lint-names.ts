// Lint rules for unknown names. A listed tool or table that is not registered is never allowed; a name that is similar
// to a registered one is probably a typing mistake.

import { quoteForMessage } from '../../core/contract/finding-text.js';
import { type Catalogue, ACTIONS } from '../../core/contract/policy/catalogue.js';
import { isNear } from '../../core/contract/policy/near-names.js';
import { OPERATOR_TOOLS } from '../../core/contract/run/operator-act.js';
import { NATIVE_TOOL_NAMES } from '../../core/contract/policy/native-tool-names.js';
import type { LintFinding } from './lint-rules.js';
import type { PolicyParts } from '../../core/policy/files/policy-consistency.js';

/** Tools of the platform, those of coding agents, and tools of the shipped lanes, which services register. */
const TOOLS: readonly string[] = [
  ...Object.values(ACTIONS)
    .map(({ tool }) => tool)
    .filter((tool) => tool !== null),
  ...NATIVE_TOOL_NAMES,
  ...['session.verify', 'session.review'],
  ...OPERATOR_TOOLS,
  ...['export_bundle.create', 'export_bundle.validate', 'export_bundle.signoff', 'export_bundle.download'],
  ...['dictation.start', 'dictation.stop', 'transcription.run', 'transcription.status', 'interview.prompt.next'],
];
const TABLES: readonly string[] = [
  ...['sandbox_files', 'export_bundles', 'audit_ledger', 'transcripts', 'interview_notes', 'entities'],
  ...['facts', 'evidence_map', 'coa_map', 'shared_playbooks', 'shared_heuristics'],
];

export function* lintNames({ lanes: { lanes } }: PolicyParts, catalogue: Catalogue): Generator<LintFinding> {
  const { tools: registered, targets } = catalogue.registrations;
  const tools = [
    ...TOOLS,
    ...registered.map(({ name }) => name),
    ...catalogue.actions.map(({ tool }) => tool).filter((tool) => tool !== null),
  ];
  const tables = [...TABLES, ...targets.map(({ name }) => name)];
  for (const [index, { lane_id, allowed_actions }] of lanes.entries()) {
    const lane = `lane ${quoteForMessage(lane_id)}`;
    const at = (list: string, entry: number) =>
      ({ name: 'lanes', pointer: `/lanes/${index}/allowed_actions/${list}/${entry}` }) as const;
    for (const [entry, tool] of (allowed_actions.tools ?? []).entries()) {
      if (tools.includes(tool)) continue;
      const near = tools.find((name) => isNear(name, tool));
      const message = `${lane} lists the tool ${quoteForMessage(tool)}, which is not registered`;
      yield near === undefined
        ? { ...at('tools', entry), rule: 'tool.unknown', severity: 'warning', message }
        : {
            ...at('tools', entry),
            rule: 'tool.misspelt',
            severity: 'error',
            message: `${message}; there is ${quoteForMessage(near)}`,
          };
    }
    const { writes = [], reads = [] } = allowed_actions;
    const named = [
      ...writes.map(({ table }, entry) => ({ table, where: at('writes', entry) })),
      ...reads.map((table, entry) => ({ table, where: at('reads', entry) })),
    ];
    for (const { table, where } of named) {
      const near = tables.includes(table) ? undefined : tables.find((name) => isNear(name, table));
      if (near === undefined) continue;
      const message = `${lane} lists the table ${quoteForMessage(table)}, which is not registered; there is ${quoteForMessage(near)}`;
      yield { ...where, rule: 'table.misspelt', severity: 'error', message };
    }
  }
}
