// The options that features add to the commands that serve. The help shows them, so they are loaded with the command
// line. No command of a feature may import this module: it waits until their modules are loaded.

import { findMember } from '../../../features/declare-features.js';
import type { CallerOptions, TelemetryOptions, ToolCommandOptions } from '../command.js';

/** Null without the feature. */
export const CALLER_OPTIONS: CallerOptions | null = (await findMember('callerOptions')?.()) ?? null;

/** Null without the feature. */
export const TELEMETRY_OPTIONS: TelemetryOptions | null = (await findMember('telemetryOptions')?.()) ?? null;

/** Null without the feature. */
export const TOOL_OPTIONS: ToolCommandOptions | null = (await findMember('toolOptions')?.()) ?? null;
