// The child's end of the IPC channel: answers questions one by one, ends with its parent.

/** Errors of `answer` end the process, which the parent reports. */
export function answerQuestions<Question>(answer: (question: Question) => Promise<object>): void {
  process.on('message', (message) => {
    // Only the runner writes to the channel, and it is typed by the same file.
    void answer(message as Question).then((reply) => process.send?.(reply));
  });
}

/** Says that the child can be asked; `origin` is where it listens, if it does. */
export function sayReady(origin = ''): void {
  process.once('disconnect', () => process.exit());
  process.send?.({ ready: origin });
}
