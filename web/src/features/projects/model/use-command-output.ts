import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { queryKeys } from '@/lib/api/query-keys'
import { followCommand } from '../api/project-commands'

/** What is kept of a long output: the end is what matters. */
const mostKept = 400_000

/** The output of a command, as it is printed. */
export function useCommandOutput(projectId: string, commandId: string): { text: string; isCut: boolean } {
  const [output, setOutput] = useState({ text: '', isCut: false })
  const queries = useQueryClient()
  useEffect(() => {
    setOutput({ text: '', isCut: false })
    return followCommand(projectId, commandId, {
      onOutput: (part) =>
        setOutput(({ text, isCut }) => {
          const whole = text + part
          return whole.length > mostKept ? { text: whole.slice(-mostKept), isCut: true } : { text: whole, isCut }
        }),
      onEnd: () => {
        void queries.invalidateQueries({ queryKey: queryKeys.projects.commands(projectId) })
        void queries.invalidateQueries({ queryKey: queryKeys.projects.files(projectId) })
      },
    })
  }, [projectId, commandId, queries])
  return output
}
