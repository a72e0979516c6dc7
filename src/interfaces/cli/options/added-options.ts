// The options that features add to the commands that serve. The help shows them, so they are loaded with the command
// line. No command of a feature may import this module: it waits until their modules are loaded.

import { FEATURES } from '../../../features/declare-features.js';
import type { CallerOptions, TelemetryOptions } from '../command.js';

const { callerOptions } = FEATURES.find((feature) => feature.callerOptions !== undefined) ?? {};
const { telemetryOptions } = FEATURES.find((feature) => feature.telemetryOptions !== undefined) ?? {};

/** Null without the feature. */
export const CALLER_OPTIONS: CallerOptions | null = (await callerOptions?.()) ?? null;

/** Null without the feature. */
export const TELEMETRY_OPTIONS: TelemetryOptions | null = (await telemetryOptions?.()) ?? null;
