// S4 §3 and C53, from the entries: the states of each run, its decisions, and which runs were live.

import {
  behalfOf,
  endOf,
  isRefusal,
  isResolution,
  movesOf,
  stateIn,
  verdictsOf,
  type Faults,
  type Life,
  type Story,
} from './story.js';

const EDGES: Readonly<Record<string, readonly string[]>> = {
  created: ['running', 'denied', 'cancelled'],
  running: ['completed', 'failed', 'denied', 'cancelled'],
};

export function lifecycle(story: Story): Faults {
  const faults: Faults = [];
  for (const [run_id, life] of story.lives) {
    const fault = (what: string): number => faults.push(`${run_id}: ${what}`);
    edges(life, fault);
    judged(life, fault);
    performs(story, life, fault);
    family(story, life, fault);
  }
  const root = [...story.lives.values()][0];
  if (root !== undefined && endOf(root) !== undefined) {
    for (const [run_id, life] of story.lives)
      if (endOf(life) === undefined) faults.push(`${run_id}: outlives the tree`);
  }
  for (const [i, { ended, entries }] of story.turns.entries()) {
    const recorded = entries.flatMap((entry) =>
      entry.type === 'audit_event' && [...story.lives.values()].some((life) => endOf(life)?.seq === entry.seq)
        ? [`${entry.body.run_id} ${stateIn(entry.body)}`]
        : [],
    );
    const said = ended.map(({ run_id, state }) => `${run_id} ${state}`);
    if (recorded.join() !== said.join())
      faults.push(`turn ${i}: ended ${said.join()}, the entries say ${recorded.join()}`);
  }
  return faults;
}

type Fault = (what: string) => unknown;

function edges(life: Life, fault: Fault): void {
  let state = 'created';
  for (const { event } of movesOf(life)) {
    const next = stateIn(event);
    if (EDGES[state]?.includes(next) !== true) fault(`went from ${state} to ${next}`);
    state = next;
  }
  const end = endOf(life);
  if (end === undefined) return;
  for (const { event, seq } of life.said) {
    if (seq > end.seq && !isRefusal(event) && !isResolution(event))
      fault(`has ended and has a ${event.action_type} event`);
  }
}

/** C47 and D7: one decision before it runs; if approval is required, a second one after the votes. */
function judged(life: Life, fault: Fault): void {
  const verdicts = verdictsOf(life);
  const [first, second] = verdicts;
  const waits = first?.event.authz?.rule_id === 'approval.required' && first.event.outcome === 'allow';
  if (first === undefined || life.said[0]?.seq !== first.seq) fault('does not begin with its decision');
  if (verdicts.length > (waits ? 2 : 1)) fault('was judged more often than once');
  for (const { event } of verdicts) {
    if (event.authz?.decision !== event.outcome) fault('its decision has another outcome');
  }
  const last = waits ? second : first;
  const [move] = movesOf(life);
  if (move === undefined) {
    if (last !== undefined) fault('was judged and did not move');
    return;
  }
  const state = stateIn(move.event);
  if (last === undefined && state !== 'cancelled') fault(`is ${state} and has no decision`);
  if (last !== undefined && state !== (last.event.outcome === 'allow' ? 'running' : 'denied')) {
    fault(`is ${state} after ${last.event.outcome}`);
  }
  if (last !== undefined && (last.turn !== move.turn || last.seq >= move.seq)) fault('moved before it was judged');
}

/** No action for a run that is not allowed and running. */
function performs(story: Story, life: Life, fault: Fault): void {
  if (life.performed.length > 1) fault('was performed twice');
  for (const { turn, command } of life.performed) {
    const allowed = verdictsOf(life).some(
      ({ event, turn: at }) => at <= turn && event.outcome === 'allow' && event.authz?.rule_id !== 'approval.required',
    );
    const [first] = movesOf(life);
    const end = endOf(life);
    if (!allowed) fault('was executed without an allow');
    if (first === undefined || stateIn(first.event) !== 'running' || first.turn > turn)
      fault('was performed and was not running');
    if (end !== undefined && end.turn <= turn) fault('was performed and had ended');
    if (command.effect.run_id !== command.run_id) fault('its command names another run');
    if (story.lives.get(life.run.parent_run_id ?? '') === undefined) fault('was performed and has no parent');
  }
}

/** C53, C54. */
function family(story: Story, life: Life, fault: Fault): void {
  const parent = story.lives.get(behalfOf(life) ?? '');
  if (parent === undefined) {
    if (life.run.run_kind !== 'orchestrator') fault('has no parent');
    return;
  }
  const [began] = movesOf(parent);
  if (began === undefined || stateIn(began.event) !== 'running' || began.seq > life.seq)
    fault('its parent was not running');
  const [own, above] = [endOf(life), endOf(parent)];
  if (above === undefined) return;
  if (above.seq < life.seq) fault('was created by a run that had ended');
  if (own === undefined || own.seq > above.seq) fault('outlives its parent');
}
