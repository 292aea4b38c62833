// Runs one string prompt; notes everything that the stderr callback receives.
import { params, printMessages, printNote, options, sdk } from './harness.mjs'

options.stderr = text => printNote('stderr', text)
await printMessages(sdk.query({ prompt: params.prompts[0], options }))
