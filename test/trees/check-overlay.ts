// D1: nothing is allowed that the overlay at the time of the request denies, and the decision names its epoch.

import { OVERLAY_MATCHERS, type OverlayFact, type OverlaySubject } from '../../src/core/contract/policy/overlay.js';
import {
  actOf,
  behalfOf,
  firstOf,
  proposalBefore,
  verdictsOf,
  type Faults,
  type Life,
  type Said,
  type Story,
} from './story.js';

export function overlay(story: Story): Faults {
  const faults: Faults = [];
  for (const [run_id, life] of story.lives) {
    if (life.run.run_kind === 'orchestrator') continue;
    for (const said of verdictsOf(life)) {
      const { authz, outcome } = said.event;
      const fact = inForce(story, life, said);
      if (fact === undefined) continue;
      const denied = deniedBy(fact, subjectOf(story, life));
      if (outcome === 'allow' && denied !== null) faults.push(`${run_id}: allowed, and ${denied} denies it`);
      const rule = authz?.rule_id ?? '';
      if (rule.startsWith('overlay.') && rule !== `overlay.${denied ?? ''}`)
        faults.push(`${run_id}: denied by ${rule}, which does not`);
      const named = / overlay@(.*)$/.exec(authz?.policy_ref ?? '')?.[1];
      const epoch = fact === null ? undefined : String(fact.epoch ?? fact.problem);
      if (named !== epoch) faults.push(`${run_id}: judged under ${named ?? 'none'}, in force is ${epoch ?? 'none'}`);
    }
  }
  return faults;
}

/** The overlay of the requesting input; undefined if a vote completed the approval and no request followed. */
function inForce(story: Story, life: Life, { turn }: Said): OverlayFact | null | undefined {
  const input = story.turns[turn]?.input;
  const high = ['promotion', 'export'].includes(startedBy(story, life).run.run_kind);
  if (input === undefined || (high && input.kind === 'wake')) return undefined;
  if (high || life.run.run_kind === 'agent') return 'overlay' in input ? input.overlay : undefined;
  const started = startedBy(story, life);
  // A timer of an agent causes a retry, which has its own overlay.
  if (input.kind === 'wake' && input.run_id === behalfOf(started)) return input.overlay;
  const asked = proposalBefore(story, { ...firstOf(story, started), turn });
  return asked === null ? undefined : asked.overlay;
}

/** A write below a gateway or a promotion has the overlay of its parent's request. */
function startedBy(story: Story, life: Life): Life {
  const above = story.lives.get(life.run.parent_run_id ?? '');
  const kind = above?.run.run_kind ?? 'agent';
  return above === undefined || life.run.retry !== null || kind === 'agent' || kind === 'orchestrator' ? life : above;
}

function subjectOf(story: Story, life: Life): OverlaySubject {
  const { run } = life;
  const act = actOf(story, life);
  const subject = {
    role_id: run.role_id,
    lane_id: run.lane_id,
    case_id: run.case_id,
    run_id: run.run_id,
    actor_id: run.actor.actor_id,
    action: act?.action ?? null,
  };
  if (act === null) return { ...subject, tool: null, table: null };
  const own = story.policy.catalogue.registrations.actions.find(({ name }) => name === act.action)?.needs;
  const target = typeof act.args['target'] === 'string' ? act.args['target'] : null;
  const table =
    own !== undefined
      ? 'write' in own
        ? own.write.table
        : 'read' in own
          ? own.read
          : null
      : ['WRITE_FILE', 'DELETE_FILE'].includes(act.action)
        ? 'sandbox_files'
        : target;
  const gateway = run.run_kind === 'tool_gateway';
  return {
    ...subject,
    tool: gateway ? (run.request?.name ?? null) : run.run_kind === 'export' ? 'export_bundle.create' : null,
    table,
  };
}

function deniedBy(fact: OverlayFact | null, subject: OverlaySubject): string | null {
  if (fact === null) return null;
  if (fact.epoch === null) return 'unusable';
  const found = fact.rules.find((rule) =>
    OVERLAY_MATCHERS.every((name) => {
      const [wanted, given] = [rule[name], subject[name]];
      return (
        wanted === undefined || given === wanted || (name === 'run_id' && given?.startsWith(`${wanted}.`) === true)
      );
    }),
  );
  return found?.rule_id ?? null;
}
