// S4-59, S4-61, C91: the references in the records of agent and orchestrator runs: all that a run was given, and the
// last of what it has produced.

import { describe, expect, test } from '@jest/globals';
import { withRefs } from '../../machines/run.js';
import { artifactRef, type Artifact, type ArtifactRef } from '../../src/core/contract/artifact-ref.js';
import { sha256 } from '../../src/core/contract/hash.js';
import { AGENT, CASE, proposal, TREE, TreeDriver } from '../fixtures/tree.js';

const artifact = (kind: Artifact['kind'], text: string): Artifact => ({
  kind,
  case_id: CASE,
  bytes: Buffer.from(text),
});
const refs = (from: number, to: number): readonly ArtifactRef[] =>
  Array.from({ length: to - from }, (_, n) => artifactRef(artifact('result', `result ${from + n}`)));
const hashes = (all: readonly ArtifactRef[] = []): readonly string[] => all.map(({ hash_sha256 }) => hash_sha256);

describe('S4-59: the references of a run', () => {
  test('are at most 64: of more, the last ones are listed', () => {
    expect(withRefs(refs(0, 60), refs(60, 64))).toEqual(refs(0, 64));
    expect(withRefs(refs(0, 60), refs(60, 70))).toEqual(refs(6, 70));
    expect(withRefs([], refs(0, 100))).toEqual(refs(36, 100));
  });

  test('name each content once', () => {
    expect(withRefs(refs(0, 3), refs(1, 5))).toEqual(refs(0, 5));
    expect(withRefs(refs(0, 64), refs(0, 64))).toEqual(refs(0, 64));
  });

  test('name the texts that the scope of the tree names by hash', () => {
    const note = artifact('note', 'A note of the caller.');
    const d = new TreeDriver();
    d.send({ kind: 'open', ...d.opening(), notes: [artifactRef(note)] }, [...d.openingMaterials(), note]);
    d.startAgent();
    for (const run_id of [TREE, AGENT]) {
      const [running] = d.audit(run_id).filter(({ outcome_reason }) => outcome_reason === 'running');
      expect(hashes(running?.input_artifacts).slice(4)).toEqual([sha256(note.bytes)]);
    }
  });

  test('name the prompts that came with the proposals of an agent, once each, when it ends', () => {
    const d = new TreeDriver().ready();
    const prompts = ['You are a clerk.', 'You are a careful clerk.'].map((text) => artifact('prompt', text));
    const proposed = (action: string, args: object, prompt: Artifact): void => {
      const payload = artifact('raw_payload', JSON.stringify(proposal(action, args)));
      const about = { run_id: AGENT, seen: null, tokens: null, overlay: null } as const;
      const input = { kind: 'proposal', ...about, payload: artifactRef(payload), prompt: artifactRef(prompt) } as const;
      d.send(input, [payload, prompt]);
    };
    proposed('THINK', {}, prompts[0]!);
    proposed('THINK', {}, prompts[1]!);
    proposed('FINISH', { response: 'Done.' }, prompts[0]!);
    expect(d.traces.map(({ outcome }) => outcome)).toEqual(['SUCCESS', 'SUCCESS', 'SUCCESS']);
    const [ended] = d.audit(AGENT).filter(({ outcome_reason = '' }) => outcome_reason.startsWith('completed'));
    const named = prompts.map(({ bytes }) => sha256(bytes));
    expect(hashes(ended?.input_artifacts)).toEqual(named);
  });
});
