// Printed lines were acknowledged: all of them must be in the ledger, as they were printed (D2, D4, D6).

import type { LedgerFacts } from './ledger-facts.js';
import type { Tally } from './tally.js';
import type { Said } from './workload.js';

type Response = Extract<Said, { said: 'response' }>;

const isResponse = (line: Said): line is Response => line.said === 'response';

/** Every response, start and end that any process of this home printed. */
export function checkSaid(tally: Tally, said: readonly Said[], facts: LedgerFacts, label: string): void {
  const responses = said.filter(isResponse);
  checkRecorded(tally, responses, facts, label);
  checkRepeated(tally, said, facts, label);
  for (const line of said) {
    if (line.said === 'started') {
      const link = facts.created.get(line.run_id)?.link;
      tally.that(link === line.link, () => `${label}: run ${line.run_id} was started, the ledger says ${String(link)}`);
    }
    // D2: returned only to the caller.
    if (line.said === 'ended' && line.reason !== 'AUDIT_FAILURE') {
      const record = facts.records.get(line.run_id);
      // `<state>:<reason>`, or only the state if there is no reason.
      const found = `${String(record?.status)} ${String(record?.outcome)}`;
      const outcome = line.reason === line.state ? line.state : `${line.state}:${line.reason}`;
      const same = found === `${line.state} ${outcome}`;
      tally.that(same, () => `${label}: run ${line.run_id} ended as ${outcome}, the ledger says ${found}`);
    }
  }
}

/** There are as many traces with this payload and response as were printed, without repeated requests. */
function checkRecorded(tally: Tally, responses: readonly Response[], facts: LedgerFacts, label: string): void {
  const recorded = counted(
    facts.traces.map(({ run_id, payload, response_sha256 }) => `${run_id} ${payload.hash_sha256} ${response_sha256}`),
  );
  const keyOf = (each: Response): string => `${each.run_id} ${each.payload_sha256} ${each.response_sha256}`;
  const once = new Map<string, Response>();
  responses.forEach((each, index) => once.set(each.input_id === null ? `#${index}` : idOf(each), each));
  for (const [key, count] of counted([...once.values()].map(keyOf))) {
    const found = recorded.get(key) ?? 0;
    tally.that(found >= count, () => `${label}: printed ${count} times, in the ledger ${found} times: ${key}`);
  }
}

/** D4: a repeated input id is a no-op, in whichever process, and gets the recorded response. */
function checkRepeated(tally: Tally, said: readonly Said[], facts: LedgerFacts, label: string): void {
  const answers = new Map<string, string>();
  for (const line of said) {
    if ((line.said !== 'response' && line.said !== 'error') || line.input_id === null) continue;
    const answer = line.said === 'response' ? line.response_sha256 : line.code;
    const id = idOf(line);
    const former = answers.get(id);
    // An error is not a response: an input that was not recorded before may be recorded now.
    if (former === undefined || line.said === 'response') {
      tally.that(former === undefined || former === answer, () => `${label}: ${id} got ${former} and then ${answer}`);
      if (line.said === 'response') answers.set(id, answer);
    } else tally.that(false, () => `${label}: ${id} had a response, and then ${answer}`);
  }
  for (const [id, count] of facts.inputs) {
    tally.that(count === 1, () => `${label}: input ${id} entered ${count} times`);
  }
}

const idOf = (line: { readonly run_id: string; readonly input_id: string | null }): string =>
  `${line.run_id} ${String(line.input_id)}`;

function counted(keys: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1);
  return counts;
}
