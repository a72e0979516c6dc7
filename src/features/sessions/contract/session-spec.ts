// The document that a session works through: phases with tasks, verifications and a gate. YAML or JSON.

import Type, { type Static, type TSchema } from 'typebox';
import { closed, Identifier, OneOf } from '../../../core/contract/shapes.js';

export const SPEC_BYTES_MAX = 16_777_216;
export const SPEC_TASKS_MAX = 20_000;
/** Per task. */
export const DEPENDENCIES_MAX = 256;

/** Id of the spec, a phase or a task; reports and packets refer to it. */
export const SpecId = Type.String({ minLength: 1, maxLength: 120, pattern: '^[A-Za-z0-9][A-Za-z0-9._-]*$' });
const Text = (maxLength: number) => Type.String({ minLength: 1, maxLength });

/** A program and its arguments; no shell interprets them. */
export const SpecCommand = Type.Array(Type.String({ maxLength: 4_096 }), { minItems: 1, maxItems: 256 });

const common = {
  id: SpecId,
  title: Text(200),
  /** Tasks of this or an earlier phase that must be completed first. */
  depends_on: Type.Optional(Type.Array(SpecId, { maxItems: DEPENDENCIES_MAX, uniqueItems: true })),
};

/** A task for the agent. */
export const ImplementTask = Type.Object(
  {
    ...common,
    type: Type.Optional(Type.Literal('implement')),
    /** The complete instruction for the agent (S3-19). */
    instruction: Text(32_768),
    acceptance: Type.Optional(Type.Array(Text(2_000), { maxItems: 64 })),
    /** A hint: files that the task probably concerns. */
    files: Type.Optional(Type.Array(Text(1_024), { maxItems: 256 })),
    /** The lane of the agent run. Default: the lane of the session. */
    lane: Type.Optional(Identifier),
  },
  closed,
);
export type ImplementTask = Static<typeof ImplementTask>;

/** A command that the platform runs itself, after the other tasks of the phase. */
export const VerifyTask = Type.Object(
  {
    ...common,
    type: Type.Literal('verify'),
    command: SpecCommand,
    /** The working directory inside the sandbox, as `/sandbox/...`. Default: `/sandbox/`. */
    cwd: Type.Optional(Text(1_024)),
    /** Default 300. */
    timeout_seconds: Type.Optional(Type.Integer({ minimum: 1, maximum: 3_600 })),
    /** The instruction for the agent. Default: made from title and command. */
    instruction: Type.Optional(Text(32_768)),
    lane: Type.Optional(Identifier),
  },
  closed,
);
export type VerifyTask = Static<typeof VerifyTask>;

export const SpecTask = Type.Union([ImplementTask, VerifyTask]);
export type SpecTask = Static<typeof SpecTask>;

/** Who reviews whether the result of a phase is what the spec asks for. */
export const SpecGate = Type.Object(
  {
    /** `command`: a program of the spec; `callback`: code of the embedding service; `manual`: a person. */
    reviewer: OneOf(['command', 'callback', 'manual']),
    /** Only for the reviewer `command`: its exit code and the findings that it prints decide. */
    command: Type.Optional(SpecCommand),
    cwd: Type.Optional(Text(1_024)),
    timeout_seconds: Type.Optional(Type.Integer({ minimum: 1, maximum: 3_600 })),
    /** The instruction for the reviewer. */
    instruction: Type.Optional(Text(32_768)),
    /** False: the result is recorded and blocks nothing. Default true. */
    required: Type.Optional(Type.Boolean()),
  },
  closed,
);
export type SpecGate = Static<typeof SpecGate>;

const phaseSchema = <T extends TSchema>(task: T) =>
  Type.Object(
    {
      id: SpecId,
      title: Text(200),
      tasks: Type.Array(task, { minItems: 1, maxItems: SPEC_TASKS_MAX }),
      gate: Type.Optional(SpecGate),
    },
    closed,
  );
const specSchema = <T extends TSchema>(phase: T) =>
  Type.Object(
    {
      spec_version: Type.Literal(1),
      id: SpecId,
      title: Text(200),
      phases: Type.Array(phase, { minItems: 1, maxItems: 1_000 }),
    },
    closed,
  );

export const SpecPhase = phaseSchema(SpecTask);
export type SpecPhase = Static<typeof SpecPhase>;

/** The schema of a spec document: phases with their tasks, verifications and gates. */
export const SessionSpec = specSchema(SpecPhase);
/** A spec document that conforms to the schema `SessionSpec`. */
export type SessionSpec = Static<typeof SessionSpec>;

/**
 * Schemas that leave the tasks of a phase, or the phases of a spec, unchecked, so that each gets its own mistakes
 * later.
 */
export const UncheckedPhase = phaseSchema(Type.Unknown());
export const UncheckedSpec = specSchema(Type.Unknown());

/** Defaults for the working directory and the timeout of commands. */
export const VERIFY_CWD = '/sandbox/';
export const VERIFY_TIMEOUT_SECONDS = 300;

export const isVerifyTask = (task: SpecTask): task is VerifyTask => task.type === 'verify';
