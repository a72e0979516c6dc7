import Type, { type Static } from 'typebox';
import { PolicyName } from './policy-header.js';
import { closed, OneOf } from '../shapes.js';

export const CALL_RULE_ID_PATTERN = '[a-z][a-z0-9_]{0,39}';
export const CALL_DECISIONS = ['allow', 'deny', 'approval'] as const;

const listOf = (chars: number, pattern?: string) =>
  Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: chars, ...(pattern === undefined ? {} : { pattern }) }), {
      minItems: 1,
      maxItems: 256,
    }),
  );

/**
 * What calls of tools in a lane may contain. A call is allowed if each of its parts (a command, a path, a host, a name)
 * matches a rule that allows it, and none matches a rule that denies it. A rule without conditions matches each part.
 */
export const CallRule = Type.Object(
  {
    /** In rule ids and reasons; with the decision `approval`, `call.ID` is the subject of an approval rule. */
    id: Type.String({ pattern: `^${CALL_RULE_ID_PATTERN}$` }),
    tools: Type.Array(PolicyName, { minItems: 1, maxItems: 64 }),
    decision: OneOf(CALL_DECISIONS),
    /** The first words of a command, with one space between them: `git status`. */
    commands: listOf(200, '^\\S+(?: \\S+)*$'),
    /**
     * The options that these commands may have, with spaces between them; absent: all. `-l` may stand with others
     * (`-la`), `-n=` and `--color=` may have a value, and `-#` is a number.
     */
    options: listOf(400, '^[-+@]\\S*(?: [-+@]\\S*)*$'),
    /** Globs of canonical paths. In a rule that denies, also of the words of a command. */
    paths: listOf(400),
    /** Hosts of addresses: `example.org`, or `*.example.org` for all below it. */
    hosts: listOf(253, '^(?:\\*\\.)?[a-z0-9-]+(?:\\.[a-z0-9-]+)*$'),
    /** Globs of the name of another tool; for a tool of an MCP server, of `SERVER/TOOL`. */
    names: listOf(400),
  },
  closed,
);
/** A rule that conforms to the schema `CallRule`. */
export type CallRule = Static<typeof CallRule>;

/** The subject of the approval that a rule with the decision `approval` asks for. */
export const approvalSubjectOf = ({ id }: Pick<CallRule, 'id'>): string => `call.${id}`;
