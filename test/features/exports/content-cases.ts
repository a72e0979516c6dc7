// Faults in the contents of a bag: artifacts, policies and machines.

import { sha256 } from '../../../src/core/contract/hash.js';
import {
  P1,
  P2,
  R3,
  LANES,
  MACHINES,
  without,
  manifest,
  bytes,
  text,
  all,
  swapped,
  type BundleCase,
} from './bundle-changes.js';

export const CONTENT_CASES: readonly BundleCase[] = [
  ['no change', (files) => files, []],

  ['an artifact is changed', bytes(P1, 'other'), ['bundle.artifact_differs']],
  ['an artifact is changed, of the same size', text(P1, (t) => t.replace('here', 'hers')), ['bundle.artifact_differs']],
  ['an artifact is removed', (files) => without(files, P1), ['bundle.artifact_missing', 'bundle.reference_absent']],
  ['an unreferenced artifact is removed', (files) => without(files, R3), ['bundle.artifact_missing']],
  ['an artifact is added', bytes(`data/artifacts/${sha256('more')}`, 'more'), ['bundle.artifact_unlisted']],
  [
    'two artifacts are swapped',
    (files) => ({ ...files, [P1]: files[P2]!, [P2]: files[P1]! }),
    ['bundle.artifact_differs'],
  ],
  [
    'an artifact is relabelled',
    (files) => ({ ...without(files, P1), [`data/artifacts/${'0'.repeat(64)}`]: files[P1]! }),
    ['bundle.artifact_differs', 'bundle.artifact_missing', 'bundle.artifact_unlisted', 'bundle.reference_absent'],
  ],
  [
    'an artifact and its reference are removed',
    all(
      (files) => without(files, P1),
      manifest(({ contents }) => {
        contents.artifacts = contents.artifacts.filter(({ hash_sha256 }) => !P1.endsWith(hash_sha256));
      }),
    ),
    ['bundle.reference_absent'],
  ],
  ['a reference is removed', manifest(({ contents }) => void contents.artifacts.shift()), ['bundle.artifact_unlisted']],
  [
    'a reference is repeated',
    manifest(({ contents }) => void contents.artifacts.unshift(contents.artifacts[0]!)),
    ['bundle.artifact_order'],
  ],
  [
    'two references are swapped',
    manifest(({ contents }) => (contents.artifacts = swapped(contents.artifacts, 0, 1))),
    ['bundle.artifact_order'],
  ],
  [
    'a reference has another size',
    manifest(({ contents }) => (contents.artifacts[0]!.byte_size = 1)),
    ['bundle.artifact_differs'],
  ],
  [
    'a reference has another id',
    manifest(({ contents }) => (contents.artifacts[0]!.artifact_id = 'sha256:x')),
    ['bundle.artifact_differs'],
  ],
  [
    'a reference is of another case',
    manifest(({ contents }) => (contents.artifacts[0]!.case_id = 'case-0002')),
    ['bundle.other_case'],
  ],
  ['a file is unexpected', bytes('data/more.txt', 'x'), ['bundle.file_unexpected']],
  ['a file has a malformed name', bytes(`data/artifacts/${'A'.repeat(64)}`, 'x'), ['bundle.file_unexpected']],
  ['a policy is changed', bytes(LANES, 'lanes: others'), ['bundle.policy_differs']],
  ['the machines are changed', bytes(MACHINES, '{}'), ['bundle.policy_differs']],
  ['the machines are removed', (files) => without(files, MACHINES), ['bundle.policy_missing']],
];
