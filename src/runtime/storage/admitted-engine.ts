import { isOpeningInput } from '../../core/contract/run/entry.js';
import { featureActorId, featureInputKind, loadFeatureOf } from '../../core/contract/run/feature-vocabulary.js';
import type { SubmissionResult, NewInput, Submission, TreeEngine } from '../../engine/tree-engine.js';
import type { StorageAccountIds } from './storage-accounts.js';
import type { StorageGuard } from './storage-guard.js';

/**
 * The engine as callers use it. The storage guard must first admit starts of trees, content of agents, and readings of
 * people. Ends of runs, decisions of people, and what the engine itself records always pass.
 */
export class AdmittedEngine implements TreeEngine {
  readonly #engine: TreeEngine;
  readonly #guard: StorageGuard;

  constructor(engine: TreeEngine, guard: StorageGuard) {
    this.#engine = engine;
    this.#guard = guard;
  }

  submit(tree_id: string, submission: Submission): Promise<SubmissionResult> {
    // The accounts of an input depend on its feature. What core decides with a feature has none.
    const loading = 'feature' in submission.input ? loadFeatureOf(submission.input) : null;
    if (loading === null) return this.#submitAdmitted(tree_id, submission);
    return loading.then(() => this.#submitAdmitted(tree_id, submission));
  }

  #submitAdmitted(tree_id: string, submission: Submission): Promise<SubmissionResult> {
    const { input, materials } = submission;
    const guard = this.#guard;
    const submit = (): Promise<SubmissionResult> => this.#engine.submit(tree_id, submission);
    if (isOpeningInput(input)) return guard.admitStart(accountIdsOf(null, input), submit);
    switch (input.kind) {
      case 'proposal':
      case 'start_run':
        return guard.admitContent(accountIdsOf(tree_id, input), bytesOf(materials), submit);
      case 'start_agent':
        // Its own entries were reserved together with those of the tree that is opened for it.
        return materials.length === 0
          ? submit()
          : guard.admitContent(accountIdsOf(tree_id, input), bytesOf(materials), submit);
      case 'access':
        return guard.admitContent({ tree_id: null, case_id: null, actor_id: input.actor.actor_id }, 0, submit);
      default:
        return featureInputKind(input.kind) === null
          ? submit()
          : guard.admitContent(accountIdsOf(tree_id, input), bytesOf(materials), submit);
    }
  }

  readonly peek: TreeEngine['peek'] = (tree_id) => this.#engine.peek(tree_id);
  readonly inspect: TreeEngine['inspect'] = (tree_id, work) => this.#engine.inspect(tree_id, work);
  readonly findStep: TreeEngine['findStep'] = (...step) => this.#engine.findStep(...step);
  readonly awaitStep: TreeEngine['awaitStep'] = (...step) => this.#engine.awaitStep(...step);
  readonly erase: TreeEngine['erase'] = (...erasure) => this.#engine.erase(...erasure);
  readonly exclusively: TreeEngine['exclusively'] = (work) => this.#engine.exclusively(work);
  readonly head: TreeEngine['head'] = () => this.#engine.head();
  readonly waitUntilIntegrated: TreeEngine['waitUntilIntegrated'] = (...waiting) =>
    this.#engine.waitUntilIntegrated(...waiting);
  readonly labelVersion: TreeEngine['labelVersion'] = (case_id) => this.#engine.labelVersion(case_id);
  readonly start: TreeEngine['start'] = () => this.#engine.start();
  readonly stop: TreeEngine['stop'] = () => this.#engine.stop();
  readonly restart: TreeEngine['restart'] = () => this.#engine.restart();

  get hasFailed(): boolean {
    return this.#engine.hasFailed;
  }

  get condition(): TreeEngine['condition'] {
    return this.#engine.condition;
  }
}

const bytesOf = (materials: Submission['materials']): number =>
  materials.reduce((sum, { bytes }) => sum + bytes.byteLength, 0);

/**
 * The accounts that content counts for, according to its input. The accounts know the rest for trees of this process.
 */
function accountIdsOf(tree_id: string | null, input: NewInput): StorageAccountIds {
  const namedCase = 'case_id' in input ? input.case_id : 'payload' in input ? (input.payload.case_id ?? null) : null;
  const actor_id = 'actor' in input ? input.actor.actor_id : (featureActorId(input) ?? '');
  return { tree_id, case_id: namedCase, actor_id };
}
