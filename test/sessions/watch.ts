// Invariants of a session after every input: unique events happen at most once, and every answer has an instruction.

import { canonicalJson } from '../../src/core/contract/json.js';
import type { EntryBody } from '../../src/core/contract/run/entry.js';
import type { SessionAnswer } from '../../src/features/sessions/contract/session-answer.js';
import type { SpecTask } from '../../src/features/sessions/contract/session-spec.js';
import { isEntryBody } from '../../src/core/contract/validators.js';
import { auditGates, hasSettledTasks } from '../../src/features/sessions/rules/task-progress.js';
import { activationId, CONSUMED_MAX, type SessionState } from '../../src/features/sessions/rules/session-state.js';
import type { SessionDriver } from '../fixtures/session.js';

export class SessionWatch {
  #before: SessionState | null = null;
  #decisions = 0;
  readonly #consumed = new Map<string, number>();
  readonly #proofs = new Set<string>();
  readonly #checked = new Checked();

  /** @returns the violated invariant, or null */
  check(d: SessionDriver, answer: SessionAnswer | null, what: string): string | null {
    const decisions = d.decisions.slice(this.#decisions);
    this.#decisions = d.decisions.length;
    const bodies = decisions.flatMap(({ entries }) =>
      entries.flatMap(({ entry }) => (entry.type === 'session_event' ? [entry.body] : [])),
    );
    const wrong =
      bodies.map((body) => this.#event(body)).find((found) => found !== null) ??
      standing(d) ??
      this.#checked.wrongIn(d.session) ??
      version(this.#before, d.session) ??
      (answer === null ? null : findMissingInstruction(answer, what));
    this.#before = d.session;
    return wrong;
  }

  #event(body: EntryBody<'session_event'>): string | null {
    const { event, step_id, task_id, detail } = body;
    if (!isEntryBody('session_event', body as unknown)) return `the ledger could not hold ${event}`;
    this.#checked.note(body, this.#before);
    if (event === 'step_issued' && task_id !== null && this.#isCompleted(task_id)) return `${task_id} is issued again`;
    if (event !== 'step_consumed' || step_id === null) return null;
    const count = (this.#consumed.get(step_id) ?? 0) + 1;
    this.#consumed.set(step_id, count);
    const proof = String(detail['proof_sha256']);
    if (count > 1 || this.#proofs.has(proof)) return `${step_id} is reported ${count} times`;
    this.#proofs.add(proof);
    const completed = detail['outcome'] === 'success' && task_id !== null && this.#isCompleted(task_id);
    return completed ? `${task_id} is completed twice` : null;
  }

  /** Before the input: a rebase can reopen a task and issue it in the same input. */
  #isCompleted = (task_id: string): boolean => this.#before?.tasks[task_id] === 'completed';
}

/**
 * When each task was done, verified and passed, and under which instructions: a check follows all work that it covers.
 */
class Checked {
  #count = 0;
  readonly #tasks = new Map<string, { readonly at: number; readonly words: string }>();
  readonly #gates = new Map<string, { readonly at: number; readonly words: string }>();

  note({ event, task_id, phase_id, detail }: EntryBody<'session_event'>, before: SessionState | null): void {
    const at = (this.#count += 1);
    const found = before?.spec.phases.find(({ id }) => id === phase_id);
    if (event === 'step_consumed' && detail['outcome'] === 'success' && task_id !== null) {
      const task = found?.tasks.find(({ id }) => id === task_id);
      this.#tasks.set(task_id, { at, words: canonicalJson(task?.type === 'verify' ? task.command : null) });
    }
    if (event === 'gate_passed' && phase_id !== null) {
      this.#gates.set(phase_id, { at, words: canonicalJson(found?.gate ?? null) });
    }
  }

  wrongIn({ spec, tasks, gates }: SessionState): string | null {
    for (const { id, tasks: own, gate } of spec.phases) {
      const at = (some: readonly SpecTask[]) =>
        Math.max(
          0,
          ...some.filter((task) => tasks[task.id] === 'completed').map((task) => this.#tasks.get(task.id)!.at),
        );
      const made = at(own.filter(({ type }) => type !== 'verify'));
      for (const task of own) {
        const known = this.#tasks.get(task.id);
        if (task.type !== 'verify' || tasks[task.id] !== 'completed' || known === undefined) continue;
        if (known.at < made) return `${task.id} was verified before all was made`;
        if (known.words !== canonicalJson(task.command)) return `${task.id} was verified by another command`;
      }
      const passed = this.#gates.get(id);
      if (gates[id]?.status !== 'passed' || passed === undefined) continue;
      if (passed.at < at(own)) return `${id} was passed before all was done`;
      if (passed.words !== canonicalJson(gate ?? null)) return `${id} was passed by another gate`;
    }
    return null;
  }
}

function standing({ session: s, tree }: SessionDriver): string | null {
  const { status, pause_reason, failure_reason, outstanding, check, consumed } = s;
  if ((status === 'paused') !== (pause_reason !== null)) return `${status} because of ${pause_reason ?? 'nothing'}`;
  if ((status === 'failed') !== (failure_reason !== null)) return `${status} because of ${failure_reason ?? 'nothing'}`;
  if (outstanding !== null && status !== 'running' && status !== 'paused') return `${status} with a step`;
  if (status === 'running' && outstanding !== null && !ofActivation(s, outstanding.run_ids.at(-1)))
    return 'a foreign run';
  if (check !== null && !tree.isLive(check.run_id)) return `${check.run_id} is waited for, and has ended`;
  if (consumed.length > CONSUMED_MAX) return 'too many proofs';
  if (new Set(consumed.map(({ proof_sha256 }) => proof_sha256)).size < consumed.length) return 'a proof is used twice';
  if (status !== 'completed') return null;
  return auditGates(s, null).length > 0 || !s.spec.phases.every((one) => hasSettledTasks(s, one))
    ? 'completed too early'
    : null;
}

const ofActivation = (s: SessionState, run_id = ''): boolean => run_id.startsWith(`${activationId(s)}.`);

/** The version increases by one with every change, and only then. */
function version(before: SessionState | null, after: SessionState): string | null {
  if (before === null) return null;
  const same = canonicalJson({ ...before, state_version: 0 }) === canonicalJson({ ...after, state_version: 0 });
  if (same && before.state_version === after.state_version) return null;
  return after.state_version > before.state_version ? null : 'the version does not tell that it has changed';
}

/** Every answer to `next` has an instruction, a stop signal, or an error. */
function findMissingInstruction({ success, data }: SessionAnswer, what: string): string | null {
  const expectsInstruction = ['work', 'next', 'forge', 'repeat'].includes(what);
  return expectsInstruction && success && data.next_step === null && data.loop_signal === null
    ? 'there is nothing to do'
    : null;
}
