// The version of the protocol that these views speak; the Python side holds the same number, and a test compares.
export const PROTOCOL = 1;
