import Type, { type Static } from 'typebox';
import { closed, GitSha, OneOf, Sha256 } from '../shapes.js';

export const POLICY_FILES = ['lanes', 'roles', 'actions'] as const;
export type PolicyFile = (typeof POLICY_FILES)[number];

/** The files that a policy can have besides, with their names, in the order in which a tree pins them. */
export const OPTIONAL_FILES = { conditions: 'conditions.cedar', counters: 'counters.yaml' } as const;
export type OptionalPolicyFile = keyof typeof OPTIONAL_FILES;
export const OPTIONAL_FILE_KEYS = Object.keys(OPTIONAL_FILES) as readonly OptionalPolicyFile[];
export type AnyPolicyFile = PolicyFile | OptionalPolicyFile;

/** Something for each policy file, and for the optional ones that there are. */
export type ForPolicyFiles<T> = Readonly<Record<PolicyFile, T>> & OptionalFiles<T>;
export type OptionalFiles<T> = { readonly [K in OptionalPolicyFile]?: T | undefined };
type FoundFiles<T> = { readonly [K in OptionalPolicyFile]?: T };

/** The policy files that there are, in order. */
export const presentFiles = (files: ForPolicyFiles<unknown>): readonly AnyPolicyFile[] => [
  ...POLICY_FILES,
  ...OPTIONAL_FILE_KEYS.filter((name) => files[name] !== undefined),
];

/** The values of the policy files that there are, in order. */
export const valuesOf = <T>(files: ForPolicyFiles<T>): readonly T[] => [
  files.lanes,
  files.roles,
  files.actions,
  ...optionalValues(files),
];

/** The values of the optional files that there are, in order. */
export const optionalValues = <T>(files: OptionalFiles<T>): readonly T[] =>
  OPTIONAL_FILE_KEYS.flatMap((name) => {
    const value = files[name];
    return value === undefined ? [] : [value];
  });

/** What `convert` makes of each optional file that there is. */
export const mapOptional = <T, R>(files: OptionalFiles<T>, convert: (value: T) => R): FoundFiles<R> =>
  toOptionalFiles(
    OPTIONAL_FILE_KEYS.map((name) => {
      const value = files[name];
      return value === undefined ? undefined : convert(value);
    }),
  );

/** The optional files that there are. @param values one for each, in the order in which a tree pins them */
export const toOptionalFiles = <T>(values: readonly (T | undefined)[]): FoundFiles<T> =>
  Object.fromEntries(
    OPTIONAL_FILE_KEYS.flatMap((name, index) => {
      const value = values[index];
      return value === undefined ? [] : [[name, value]];
    }),
  );

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
