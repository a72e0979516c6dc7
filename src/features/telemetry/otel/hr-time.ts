/** A time as OpenTelemetry has it: seconds since the epoch, and nanoseconds. */
export type HrTime = [seconds: number, nanoseconds: number];

const MS_PER_SECOND = 1_000;
const NS_PER_MS = 1_000_000;
const NS_PER_SECOND = MS_PER_SECOND * NS_PER_MS;

export function toHrTime(ms: number): HrTime {
  const seconds = Math.trunc(ms / MS_PER_SECOND);
  const nanoseconds = Math.round((ms - seconds * MS_PER_SECOND) * NS_PER_MS);
  return nanoseconds < NS_PER_SECOND ? [seconds, nanoseconds] : [seconds + 1, nanoseconds - NS_PER_SECOND];
}
