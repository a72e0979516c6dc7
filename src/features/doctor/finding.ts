// What an examination of an installation reports.

/**
 * `ok`: as it should be. `note`: worth knowing. `unchecked`: it could not be examined. `problem`: something is wrong,
 * and the text says what to do.
 */
export type DoctorLevel = 'ok' | 'note' | 'unchecked' | 'problem';

/** The subjects, in the order of the report. */
export const DOCTOR_SUBJECTS = [
  'versions',
  'format',
  'ledger',
  'keys',
  'permissions',
  'disk',
  'clock',
  'settings',
  'effects',
] as const;
export type DoctorSubject = (typeof DOCTOR_SUBJECTS)[number];

/** One line of the report. */
export interface DoctorFinding {
  readonly subject: DoctorSubject;
  readonly level: DoctorLevel;
  readonly text: string;
}

export const doctorFinding = (subject: DoctorSubject, level: DoctorLevel, text: string): DoctorFinding => ({
  subject,
  level,
  text,
});
