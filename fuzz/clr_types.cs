// SPDX-License-Identifier: Apache-2.0
// The source of clr_types.dll: types whose objects stillframe reads, with the names that the class library gives them.
// csc -nologo -optimize -deterministic -t:library -r:System.Private.CoreLib.dll clr_types.cs
namespace System
{
    public class String { int _stringLength; int _firstChar; }
    public class Delegate { object _target; }
}
namespace System.Threading
{
    public class Thread { object _name; object _DONT_USE_InternalThread; int _managedThreadId; }
    public class WaitHandle { object _waitHandle; }
    public class Lock { uint _owningThreadId; object _waitEvent; }
    public class ReaderWriterLockSlim { object _readEvent; object _writeEvent; int _writeLockOwnerId; }
}
namespace System.Threading.Tasks
{
    public class Task { object m_continuationObject; int m_stateFlags; }
    public class AwaitTaskContinuation { object m_action; }
    public class ContinueWithTaskContinuation { object m_task; }
}
namespace System.Runtime.CompilerServices
{
    public class AsyncTaskMethodBuilder
    {
        public class AsyncStateMachineBox<T> : Threading.Tasks.Task { public T StateMachine; }
        class ContinuationWrapper { object _continuation; }
    }
    // Its state machine has the field <>1__state, as those of asynchronous methods have.
    public class Work { public static Collections.Generic.IEnumerable<int> Numbers() { yield return 1; } }
}
