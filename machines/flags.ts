// Behaviour flags: what the machines, or the functions that they ask, do otherwise than they once did.
//
// A tree is recorded with the flags that were in force when it was opened: they stand in the text of the machine
// definitions, which is an artifact of its `open` and whose hash is one of its pins. Whoever folds the tree, at any
// time, reads them there. A tree that has none does as it did before there was a first one.
//
// To change what a machine does in a case that may already lie in a ledger:
//   1. Add a flag below, with the next number. Numbers are never reused, and no flag is ever taken out.
//   2. Keep the old way, and ask the policy that machines and functions are handed: `policy.flags.has(N)`.
//   3. Nothing else: new trees have the flag, and the golden histories prove that old ones come out as they did.

/** One change of behaviour. */
export interface Flag {
  readonly number: number;
  /** What is done now where the flag is in force, and what was done before. */
  readonly what: string;
}

/** All that there have been, in the order of their numbers. New trees are opened with every one of them. */
export const FLAGS: readonly Flag[] = [
  {
    number: 4,
    what:
      'An export of content that a lane withholds is denied, unless that lane has `exports_content: true` and policy ' +
      'asks for an approval of exports. Before, it was judged as any other export.',
  },
  {
    number: 5,
    what: 'An exported bundle is recorded by its locator below the folder of exports; before, by a path of the host.',
  },
  {
    number: 6,
    what:
      'Voters are compared with the requester and with one another by the canonical ids and skeletons that request and ' +
      'vote carry (C87). Before, the kernel compared names as the Unicode tables of its Node folded them.',
  },
  {
    number: 7,
    what: 'A path with an invisible character is refused (C88). Before, only control characters were.',
  },
  {
    number: 8,
    what:
      'A number that a double cannot hold is refused in a payload, and one that begins with a zero in a policy (C89). ' +
      'Before, the first was rounded, and the second read as YAML 1.2 has it.',
  },
  {
    number: 9,
    what: 'An activation of a session is cancelled by the session alone: a `cancel` input for it is refused (C93).',
  },
  {
    number: 10,
    what: 'Findings among the facts of a promotion (`found:email`) count as identity or privileged notes (C92).',
  },
  {
    number: 11,
    what: 'Entries hold no free text: reasons of a cancel are codes, names that are not registered are hashes (C90).',
  },
  {
    number: 12,
    what: 'Agent and orchestrator runs record what they were given and have produced; a step has its command (C91).',
  },
];

/** The flags that machines and functions ask for, by name. */
export const ONE_AUTHORISATION = 9;
export const FINDINGS = 10;
export const FREE_TEXT = 11;
export const RUN_INPUTS = 12;

/** The flags in force for one tree. */
export type Flags = ReadonlySet<number>;

/** Those of a tree that was recorded before there was a first one. */
export const NO_FLAGS: Flags = new Set();

/** Those of a tree that is opened now. */
export const flagsOf = (flags: readonly Flag[]): Flags => new Set(flags.map(({ number }) => number));
