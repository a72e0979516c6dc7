// Behaviour flags: changes in what the machines, or the functions that they call, decide.
//
// A tree is recorded with the flags that were in force when it was opened. They are in the text of its machine
// definitions, an artifact of its `open` whose hash is one of its pins. Every later fold of the tree reads them there.
// A tree without flags behaves as it did before the first flag existed.
//
// To change what a machine does in a case that may already be in a ledger:
//   1. Add a flag below, with the next number (src/core/contract/policy/flags.ts). Numbers are never reused, and no flag is
//      ever removed.
//   2. Keep the old behaviour, and ask the policy that machines and functions receive: `policy.flags.has(N)`.
//   3. Nothing else: new trees have the flag, and the golden histories prove that old trees decide as they did.

import {
  CASE_KEY_ROTATIONS,
  COMPARED_LOOKS,
  COMPARED_PERSONS,
  COMPARED_PRINCIPALS,
  CONDITIONS,
  EXACT_CALLS,
  EXACT_NUMBERS,
  EXPLAINED_FAULTS,
  EXPORT_LOCATORS,
  EXTERNAL_ACTS,
  FINDINGS,
  FINISH_WITH_PENDING_REQUEST,
  FREE_TEXT,
  INVALID_PROPOSALS,
  KEY_ROTATIONS,
  LOST_ENTRIES,
  ONE_AUTHORISATION,
  OPERATOR_RUNS,
  PAYLOAD_PREFIX,
  RECORD_OUTPUTS,
  REPEATABLE_ACTIONS,
  REQUIRED_CASES,
  RESTORES,
  RUN_INPUTS,
  SHARED_QUOTA,
  VERIFIED_VOTERS,
  VISIBLE_NAMES,
  WITHHELD_EXPORTS,
} from '../src/core/contract/policy/flags.js';

export * from '../src/core/contract/policy/flags.js';

/** One change of behaviour. */
export interface Flag {
  readonly number: number;
  /** The behaviour with the flag, and the behaviour without it. */
  readonly what: string;
}

/** All flags, in the order of their numbers. New trees are opened with all that concern their policy. */
export const FLAGS: readonly Flag[] = [
  {
    number: PAYLOAD_PREFIX,
    what: 'A payload over the limit is recorded by its hash, its length and a prefix (C80); before, it was stored whole.',
  },
  {
    number: SHARED_QUOTA,
    what: 'A quota counts what other decisions of the case have reserved (C82); before, only what the sandbox held.',
  },
  {
    number: INVALID_PROPOSALS,
    what: 'An agent run fails after too many invalid proposals (C81); before, it went on.',
  },
  {
    number: WITHHELD_EXPORTS,
    what:
      'An export of content that a lane withholds is denied, unless that lane has `exports_content: true` and policy ' +
      'asks for an approval of exports. Before, it was judged as any other export.',
  },
  {
    number: EXPORT_LOCATORS,
    what: 'An exported bundle is recorded by its locator below the folder of exports; before, by a path of the host.',
  },
  {
    number: COMPARED_PERSONS,
    what:
      'Voters are compared with the requester and with one another by the canonical ids and skeletons that request and ' +
      'vote carry (C87). Before, the kernel compared names as the Unicode tables of its Node folded them.',
  },
  {
    number: VISIBLE_NAMES,
    what: 'A path with an invisible character is refused (C88). Before, only control characters were.',
  },
  {
    number: EXACT_NUMBERS,
    what:
      'A number that a double cannot hold is refused in a payload, and one that begins with a zero in a policy (C89). ' +
      'Before, the first was rounded, and the second read as YAML 1.2 has it.',
  },
  {
    number: ONE_AUTHORISATION,
    what: 'An activation of a session is cancelled by the session alone: a `cancel` input for it is refused (C93).',
  },
  {
    number: FINDINGS,
    what: 'Findings among the facts of a promotion (`found:email`) count as identity or privileged notes (C92).',
  },
  {
    number: FREE_TEXT,
    what: 'Entries hold no free text: reasons of a cancel are codes, names that are not registered are hashes (C90).',
  },
  {
    number: RUN_INPUTS,
    what: 'Agent and orchestrator runs record what they were given and have produced; a step has its command (C91).',
  },
  {
    number: COMPARED_LOOKS,
    what:
      'Names are also compared by what they look like in either case of each letter, and a rule of the overlay for an ' +
      'actor denies every name that counts as that person (C87). Before, it denied the name as it is written.',
  },
  {
    number: EXPLAINED_FAULTS,
    what:
      'The trace of a proposal that breaks a schema names the field and the constraint, and the message of INVALID_ARGS ' +
      'speaks of paths only if a path is wrong (C94). Before, it named neither, and always spoke of paths.',
  },
  {
    number: REPEATABLE_ACTIONS,
    what:
      'An error of an idempotent tool or action is a retryable failure, and a later request for the same has the same ' +
      'idempotency key until it succeeds (C95). Before, the outcome was unknown, and the same request was denied.',
  },
  {
    number: FINISH_WITH_PENDING_REQUEST,
    what:
      'FINISH with a pending request does what `knobs.finish_with_pending_request` says (C96); before, it ended the ' +
      'run and its requests. The step machine has the states in which FINISH waits.',
  },
  {
    number: KEY_ROTATIONS,
    what: 'A tree records that a key was replaced, and by whom (C97). Before, none did.',
  },
  {
    number: VERIFIED_VOTERS,
    what:
      'A vote records how its voter was authenticated, and an approval rule may require that an issuer has done it, how ' +
      'and how recently. Voters of different sources are different people only if policy maps both to persons (C98). ' +
      'Before, a vote had only the name and role of its voter.',
  },
  {
    number: RESTORES,
    what: 'A tree records that the ledger was restored from a backup, and who acknowledged it (C99). Before, none did.',
  },
  {
    number: EXTERNAL_ACTS,
    what:
      'The step of an action that its caller executes ends with the decision; its run waits for the report of the ' +
      'caller (U-08). Before, there were no such actions. The agent, step and mediated machines have states for them.',
  },
  {
    number: CASE_KEY_ROTATIONS,
    what: 'A tree records that the key of a case was replaced, and by whom (C100). Before, none did.',
  },
  {
    number: CONDITIONS,
    what:
      'A tree can pin conditions, by which its steps, promotions and exports are decided and approvals are asked for, ' +
      'and counters, which they read. A tree without conditions does not have this flag.',
  },
  {
    number: REQUIRED_CASES,
    what:
      'An agent run without the case that its lane requires is denied (S4-34). Before, it ran, and each of its actions ' +
      'was denied.',
  },
  {
    number: RECORD_OUTPUTS,
    what:
      'The output of a run that has written a record is a reference to that record, with its kind and the proposal that ' +
      'contains it (S4-61), and a report to a paused session is refused (S3). Before, the output was the result of the ' +
      'write, which was the same for every record, and the report had no effect, and the answer did not say so.',
  },
  {
    number: COMPARED_PRINCIPALS,
    what:
      'Conditions and counters over an actor compare persons as votes do (C87), decision points get the person, and one ' +
      'is asked about each path of an action. A condition fails that reads a scope value of which only the hash is ' +
      'recorded. Before, the name was compared as written, and decision points were asked about the first path. A tree ' +
      'without conditions and decision points does not have this flag.',
  },
  {
    number: EXACT_CALLS,
    what:
      'A call of a coding agent is judged by what its client executes: a call whose decided parts have a secret is ' +
      'unreadable, words of commands are paths as the file system resolves them, names that a search asks for are ' +
      'parts, and commands are read as bash reads them. Before, texts without secrets and words were judged.',
  },
  {
    number: LOST_ENTRIES,
    what:
      'A tree records that a failover has lost entries, and an acknowledgement names the approvals and counters that a ' +
      'person has confirmed (C99). Before, only a restore from a backup was recorded, and nothing was confirmed.',
  },
  {
    number: OPERATOR_RUNS,
    what:
      'A person can start an erasure, an archive, a restore or a key rotation as a run, which policy decides and whose ' +
      'outcome the command reports (C101). Before, no run recorded these acts.',
  },
];

/** The flags in force for one tree. */
export type Flags = ReadonlySet<number>;

/** The flags of a tree that was recorded before the first flag existed. */
export const NO_FLAGS: Flags = new Set();

/** The flags of a tree that is opened now. */
export const flagsOf = (flags: readonly Flag[]): Flags => new Set(flags.map(({ number }) => number));
