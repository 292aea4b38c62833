// Runs one string prompt; notes everything that the stderr callback receives.
import { asked, follow, note, options, sdk } from './stage.mjs'

options.stderr = text => note('stderr', text)
await follow(sdk.query({ prompt: asked.prompts[0], options }))
