import { fileURLToPath } from 'node:url'

// Path of the `whimbrel` program in this package.
export const path = fileURLToPath(new URL('./bin/whimbrel', import.meta.url))
