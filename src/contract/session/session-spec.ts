// The document that a session works through: phases of tasks, verifications and a gate. YAML or JSON.

import Type, { type Static, type TSchema } from 'typebox';
import { closed, Identifier, OneOf } from '../shapes.js';

export const SPEC_BYTES_MAX = 16_777_216;
export const SPEC_TASKS_MAX = 20_000;
/** Of one task. */
export const DEPENDENCIES_MAX = 256;

/** Of the spec, its phases and tasks: what reports and packets name them by. */
export const SpecId = Type.String({ minLength: 1, maxLength: 120, pattern: '^[A-Za-z0-9][A-Za-z0-9._-]*$' });
const Text = (maxLength: number) => Type.String({ minLength: 1, maxLength });

/** A program and its arguments, as they are handed to it: no shell reads them. */
export const SpecCommand = Type.Array(Type.String({ maxLength: 4_096 }), { minItems: 1, maxItems: 256 });

const common = {
  id: SpecId,
  title: Text(200),
  /** Tasks, of this phase or an earlier one, that must be completed first. */
  depends_on: Type.Optional(Type.Array(SpecId, { maxItems: DEPENDENCIES_MAX, uniqueItems: true })),
};

/** Something to be made by the agent. */
export const ImplementTask = Type.Object(
  {
    ...common,
    type: Type.Optional(Type.Literal('implement')),
    /** All that the agent is told (S3-19). */
    instruction: Text(32_768),
    acceptance: Type.Optional(Type.Array(Text(2_000), { maxItems: 64 })),
    /** Files that it will probably be about: a hint. */
    files: Type.Optional(Type.Array(Text(1_024), { maxItems: 256 })),
    /** The lane in which its agent run works. Default: the session's. */
    lane: Type.Optional(Identifier),
  },
  closed,
);
export type ImplementTask = Static<typeof ImplementTask>;

/** Something that the platform runs itself. It comes after the phase's other tasks. */
export const VerifyTask = Type.Object(
  {
    ...common,
    type: Type.Literal('verify'),
    command: SpecCommand,
    /** Folder inside the sandbox in which it runs, as `/sandbox/...`. Default: `/sandbox/`. */
    cwd: Type.Optional(Text(1_024)),
    /** Default 300. */
    timeout_seconds: Type.Optional(Type.Integer({ minimum: 1, maximum: 3_600 })),
    /** How the agent is told. Default: made from title and command. */
    instruction: Type.Optional(Text(32_768)),
    lane: Type.Optional(Identifier),
  },
  closed,
);
export type VerifyTask = Static<typeof VerifyTask>;

export const SpecTask = Type.Union([ImplementTask, VerifyTask]);
export type SpecTask = Static<typeof SpecTask>;

/** Who judges whether what a phase made is what it was asked for. */
export const SpecGate = Type.Object(
  {
    /** `command`: a program of the spec; `callback`: code of the service; `manual`: a person. */
    reviewer: OneOf(['command', 'callback', 'manual']),
    /** Of reviewer `command` alone: its exit code and the findings it prints decide. */
    command: Type.Optional(SpecCommand),
    cwd: Type.Optional(Text(1_024)),
    timeout_seconds: Type.Optional(Type.Integer({ minimum: 1, maximum: 3_600 })),
    /** What the reviewer is told. */
    instruction: Type.Optional(Text(32_768)),
    /** False: what it says is recorded and holds nothing up. Default true. */
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

export const SessionSpec = specSchema(SpecPhase);
export type SessionSpec = Static<typeof SessionSpec>;

/** A phase whose tasks, and a spec whose phases, are yet to be looked at: so that each can be told its own mistakes. */
export const UncheckedPhase = phaseSchema(Type.Unknown());
export const UncheckedSpec = specSchema(Type.Unknown());

/** Where and for how long commands run that say nothing of it. */
export const VERIFY_CWD = '/sandbox/';
export const VERIFY_TIMEOUT_SECONDS = 300;

export const isVerifyTask = (task: SpecTask): task is VerifyTask => task.type === 'verify';
