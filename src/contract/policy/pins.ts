import Type, { type Static } from 'typebox';
import { closed, GitSha, OneOf, Sha256 } from '../shapes.js';

export const POLICY_FILES = ['lanes', 'roles', 'actions'] as const;
export type PolicyFile = (typeof POLICY_FILES)[number];

/** The file that a policy can have besides: who has no conditions has no such file. */
export const CONDITIONS_FILE = 'conditions';
export const CONDITIONS_FILE_NAME = 'conditions.cedar';
/** Every policy file, in the order in which a tree pins them. */
export type AnyPolicyFile = PolicyFile | typeof CONDITIONS_FILE;

/** Something for each policy file, and for the conditions if there are any. */
export type ForPolicyFiles<T> = Readonly<Record<PolicyFile, T>> & { readonly conditions?: T | undefined };

/** The policy files that there are, in order. */
export const presentFiles = (files: ForPolicyFiles<unknown>): readonly AnyPolicyFile[] =>
  files.conditions === undefined ? POLICY_FILES : [...POLICY_FILES, CONDITIONS_FILE];

/** The values of the policy files that there are, in order. */
export const valuesOf = <T>(files: ForPolicyFiles<T>): readonly T[] => {
  const { lanes, roles, actions, conditions } = files;
  return conditions === undefined ? [lanes, roles, actions] : [lanes, roles, actions, conditions];
};

/** Which version of one policy file was loaded, and which source says so (C45). */
export const Pin = Type.Object({ git_sha: GitSha, sha256: Sha256, source: OneOf(['git', 'manifest']) }, closed);
export type Pin = Static<typeof Pin>;

/** Why a file has no pin. A run under such a policy is denied in `created` (C44, S4-29). */
export const PIN_PROBLEMS = ['never_committed', 'dirty', 'stale', 'not_in_manifest', 'no_source'] as const;
export type PinProblem = (typeof PIN_PROBLEMS)[number];

/** An error of the linter that an operator has accepted, for exactly these bytes of the file. */
export const AcceptedCaution = Type.Object(
  {
    rule: Type.String({ minLength: 1, maxLength: 80 }),
    path: Type.String({ maxLength: 400 }),
    sha256: Sha256,
    reason: Type.String({ minLength: 1, maxLength: 400 }),
    /**
     * The text of the accepted error. An error in one file can depend on another file: without this text, accepting an
     * error of the roles would also accept unrelated errors that the rule finds in the lanes. Absent: all that the rule
     * finds in the file.
     */
    message: Type.Optional(Type.String({ maxLength: 2_000 })),
  },
  closed,
);
export type AcceptedCaution = Static<typeof AcceptedCaution>;

/** The file next to the policies that pins them without Git (`turnpike policy pin`). */
export const PinManifest = Type.Object(
  {
    version: Type.Literal('v1'),
    files: Type.Array(Type.Object({ path: Type.String({ maxLength: 400 }), git_sha: GitSha, sha256: Sha256 }, closed), {
      maxItems: 64,
    }),
    accepted: Type.Optional(Type.Array(AcceptedCaution, { maxItems: 1_024 })),
  },
  closed,
);
export type PinManifest = Static<typeof PinManifest>;
