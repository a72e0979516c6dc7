/** The end of the label of an outcome that the client has reported, and the platform has not seen. */
export const AS_REPORTED = ', as reported';
