/** Path of the `whimbrel` program in this package, for the option `pathToClaudeCodeExecutable` of the official SDK. */
export declare const path: string
