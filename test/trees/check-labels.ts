// Information flow (S4-84, S4-85): follows what an agent has read from result to result, and compares it with the
// recorded label of every mediated run, and with what was allowed.

import type { Label } from '../../src/core/contract/policy/labels.js';
import { actOf, behalfOf, endOf, stateIn, verdictsOf, type Act, type Faults, type Life, type Story } from './story.js';

interface Known {
  readonly cases: Set<string>;
  readonly flags: Set<string>;
}

export function labels(story: Story): Faults {
  const faults: Faults = [];
  const known = new Map<string, Known>();
  const traceAt = new Map(story.traces.map(({ seq, trace }) => [seq, trace]));
  const bornAt = new Map([...story.lives.values()].map((life) => [life.seq, life]));
  for (const { entries } of story.turns) {
    for (const { seq } of entries) {
      const life = bornAt.get(seq);
      if (life !== undefined) {
        labelled(story, life, known, faults);
        for (const broken of brokenBy(story, life)) faults.push(`${life.run.run_id}: ${broken}`);
      }
      const trace = traceAt.get(seq);
      if (trace?.outcome !== 'SUCCESS' || trace.mediated_run_id === null || trace.replay_of !== null) continue;
      const run = story.lives.get(trace.mediated_run_id);
      const act = run === undefined ? null : actOf(story, run);
      const own = known.get(trace.run_id) ?? { cases: new Set(), flags: new Set() };
      known.set(trace.run_id, own);
      if (run !== undefined && act !== null) learn(story, own, run, act);
    }
  }
  return faults;
}

function labelled(story: Story, life: Life, known: ReadonlyMap<string, Known>, faults: Faults): void {
  const { label, run_id, run_kind, parent_run_id } = life.run;
  if (run_kind === 'orchestrator' || run_kind === 'agent') return;
  const { input } = story.turns[life.turn] ?? {};
  const parent = story.lives.get(parent_run_id ?? '');
  const behalf = story.lives.get(behalfOf(life) ?? '');
  const expected =
    behalf?.run.run_kind === 'agent'
      ? asLabel(known.get(behalf.run.run_id))
      : behalf?.run.run_kind === 'orchestrator' && input?.kind === 'start_run'
        ? input.facts.label
        : (parent?.run.label ?? null);
  if (JSON.stringify(label) !== JSON.stringify(expected)) {
    faults.push(`${run_id}: says it had read ${JSON.stringify(label)}, and it was ${JSON.stringify(expected)}`);
  }
}

const asLabel = (known: Known | undefined): Label => ({
  cases: [...(known?.cases ?? [])].sort(),
  flags: [...(known?.flags ?? [])].sort() as Label['flags'],
  many: false,
});

/** What the proposer knows from now on. */
function learn({ policy }: Story, { cases, flags }: Known, { run }: Life, { action, args }: Act): void {
  const { tools, targets, actions } = policy.catalogue.registrations;
  const take = (case_id: string | null, more: readonly string[]): void => {
    if (case_id !== null) cases.add(case_id);
    for (const flag of more) flags.add(flag);
  };
  const own = actions.find(({ name }) => name === action);
  if (action === 'CALL_TOOL')
    take(run.case_id, tools.find(({ name }) => name === args['tool'])?.confidentiality ?? ['?']);
  else if (action === 'READ_RECORDS') {
    const target = targets.find(({ name }) => name === args['target']);
    const asked = typeof args['case_id'] === 'string' ? args['case_id'] : run.case_id;
    take(target?.plane === 'shared' ? null : asked, target?.confidentiality ?? ['?']);
  } else if (own !== undefined) take(run.case_id, own.confidentiality);
  else if (action === 'READ_FILE' || action === 'LIST_FILES') take(run.case_id, []);
}

/** What no lane, or not this one, may have allowed. */
function brokenBy(story: Story, life: Life): readonly string[] {
  const { run } = life;
  const act = actOf(story, life);
  const last = verdictsOf(life).at(-1)?.event;
  if (act === null || last?.outcome !== 'allow') return [];
  const { targets, tools, actions } = story.policy.catalogue.registrations;
  const lane = story.policy.lanes.get(run.lane_id ?? '');
  const own = actions.find(({ name }) => name === act.action);
  const target = targets.find(({ name }) => name === act.args['target']);
  const writes = run.run_kind === 'db_write' || run.run_kind === 'promotion';
  const outside =
    run.run_kind === 'export' ||
    own?.outside === true ||
    tools.find(({ name }) => name === act.args['tool'])?.outside === true;
  const shared = target?.plane === 'shared';
  const label = run.label ?? { cases: [], flags: [], many: false };
  const foreign = label.many || label.cases.some((case_id) => case_id !== run.case_id);
  const refused = (lane?.refuses_labels ?? []).filter((name) =>
    name === 'other_case' ? foreign : name === 'any_case' ? label.cases.length > 0 : label.flags.includes(name),
  );
  const asked = act.action === 'READ_RECORDS' && !shared ? (act.args['case_id'] ?? run.case_id) : run.case_id;
  const broken: string[] = [];
  if (refused.length > 0 && (writes || outside)) broken.push(`writes what its lane refuses: ${refused.join()}`);
  if (foreign && ((writes && shared) || outside)) broken.push('carries another case to where all can see it');
  const promotes =
    run.run_kind === 'promotion' || story.lives.get(run.parent_run_id ?? '')?.run.run_kind === 'promotion';
  if (writes && shared && !promotes) broken.push('writes shared knowledge and is no promotion');
  if (asked !== run.case_id && lane?.cross_case_reads !== true) broken.push('reads another case');
  if (endOf(life)?.event !== undefined && stateIn(last) === 'denied') broken.push('is allowed and denied');
  return broken;
}
