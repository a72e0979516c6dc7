// Facts from the ledger of a home, gathered once, for comparison with the output and the effects.

import type { Entry, ResultInput, RunCreated } from '../../src/core/contract/run/entry.js';
import type { RunRecord } from '../../src/core/contract/run/run-record.js';
import type { StepTrace } from '../../src/core/contract/run/step-trace.js';
import type { LedgerReader } from '../../src/runtime/ledger/ledger-reader.js';
import { RunRecords } from '../../src/runtime/ledger/run-records.js';

/** A trace, and its place in the log. */
export interface PlacedTrace extends StepTrace {
  readonly log_index: number;
}

export interface LedgerFacts {
  readonly entries: number;
  readonly traces: readonly PlacedTrace[];
  readonly records: ReadonlyMap<string, RunRecord>;
  readonly created: ReadonlyMap<string, RunCreated>;
  /** The allowed db_write runs: each of them is an intent. */
  readonly intents: readonly string[];
  readonly results: ReadonlyMap<string, readonly ResultInput[]>;
  /** How often each input id of a proposal was recorded, by `run_id input_id`. */
  readonly inputs: ReadonlyMap<string, number>;
}

export async function factsOf(reader: LedgerReader): Promise<LedgerFacts> {
  const traces: PlacedTrace[] = [];
  const created = new Map<string, RunCreated>();
  const running = new Set<string>();
  const results = new Map<string, ResultInput[]>();
  const inputs = new Map<string, number>();
  const records = new RunRecords();
  let entries = 0;
  for await (const { text, log_index } of reader.log()) {
    const entry = JSON.parse(text) as Entry;
    entries += 1;
    records.fold(entry);
    if (entry.type === 'step_trace') traces.push({ ...entry.body, log_index });
    if (entry.type === 'run_created') created.set(entry.body.run_id, entry.body);
    if (entry.type === 'audit_event' && entry.body.outcome_reason === 'running') running.add(entry.body.run_id);
    if (entry.type !== 'input') continue;
    const { body } = entry;
    if (body.kind === 'result') results.set(body.run_id, [...(results.get(body.run_id) ?? []), body]);
    if (body.kind === 'proposal') {
      const key = `${body.run_id} ${body.input_id}`;
      inputs.set(key, (inputs.get(key) ?? 0) + 1);
    }
  }
  return {
    entries,
    traces,
    created,
    records: new Map(records.all().map((record) => [record.run_id, record])),
    intents: [...running].filter((run_id) => created.get(run_id)?.run_kind === 'db_write'),
    results,
    inputs,
  };
}
