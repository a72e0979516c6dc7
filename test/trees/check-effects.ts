// Effects outside: one key for all attempts at one effect and for nothing else (C54), and no second attempt while an
// outcome is unknown (D8).

import { behalfOf, firstOf, isResolution, type Faults, type Life, type Story } from './story.js';

export function effects(story: Story): Faults {
  const faults: Faults = [];
  const keys = new Map<string, string>();
  const unknown = new Map<string, Set<string>>();
  for (const [turn, { input, commands, entries, refused }] of story.turns.entries()) {
    for (const command of commands) {
      const life = story.lives.get(command.run_id);
      if (command.kind !== 'perform' || life === undefined) continue;
      const { idempotency_key: key, request_hash: hash } = command.effect;
      const { first, agent, attempt } = lineOf(story, life);
      const known = keys.get(first) ?? key;
      if (known !== key) faults.push(`${command.run_id}: another attempt with the key ${key} and not ${known}`);
      if ([...keys].some(([other, taken]) => other !== first && taken === key))
        faults.push(`${key} is used for two effects`);
      keys.set(first, known);
      // A request that a person repeats is executed again: only an agent must not bypass an unsettled outcome.
      const asked = story.lives.get(agent)?.run.run_kind === 'agent';
      if (asked && attempt === 0 && (unknown.get(`${agent} ${hash}`)?.size ?? 0) > 0) {
        faults.push(`${command.run_id}: executed again in turn ${turn} although its earlier outcome is unknown`);
      }
    }
    if (input.kind === 'result' && input.status === 'unknown' && !refused) note(story, input.run_id, unknown);
    for (const entry of entries) {
      if (entry.type !== 'audit_event' || !isResolution(entry.body)) continue;
      for (const runs of unknown.values()) runs.delete(entry.body.run_id);
    }
    forget(story, turn, unknown);
  }
  return faults;
}

interface Line {
  /** The run that the agent or a person started first. */
  readonly first: string;
  readonly agent: string;
  readonly attempt: number;
}

function lineOf(story: Story, life: Life): Line {
  const parent = story.lives.get(behalfOf(life) ?? '');
  const below = parent !== undefined && !['agent', 'orchestrator'].includes(parent.run.run_kind);
  const started = below ? parent : life;
  const attempt = started.run.retry?.count ?? 0;
  return { first: firstOf(story, started).run.run_id, agent: behalfOf(started) ?? '', attempt };
}

function note(story: Story, run_id: string, unknown: Map<string, Set<string>>): void {
  const life = story.lives.get(run_id);
  const hash = life?.run.request?.hash_sha256;
  if (life === undefined || hash === undefined) return;
  const place = `${lineOf(story, life).agent} ${hash}`;
  unknown.set(place, (unknown.get(place) ?? new Set<string>()).add(run_id));
}

/** A completed attempt with the same key determines the outcome of all of them. */
function forget(story: Story, turn: number, unknown: Map<string, Set<string>>): void {
  const input = story.turns[turn]?.input;
  const life = input?.kind === 'result' && input.status === 'done' ? story.lives.get(input.run_id) : undefined;
  if (life === undefined) return;
  const { first, attempt } = lineOf(story, life);
  if (attempt === 0) return;
  for (const runs of unknown.values()) {
    for (const run_id of runs) {
      const other = story.lives.get(run_id);
      if (other !== undefined && lineOf(story, other).first === first) runs.delete(run_id);
    }
  }
}
