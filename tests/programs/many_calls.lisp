;;; SPDX-License-Identifier: Apache-2.0
;;; Calls of many kinds, for a walk through SBCL's code: compiled functions, assembly routines, foreign functions. No collection of garbage
;;; after the first one, which makes the new limit count: the rules of SBCL's own code that calls Lisp for it are wrong.
(setf (sb-ext:bytes-consed-between-gcs) (* 4 1024 1024 1024))
(sb-ext:gc)
(defun fib (n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
(defun strings (n) (let ((s "")) (dotimes (i n) (setf s (concatenate 'string (subseq s 0 (min 20 (length s))) (string (code-char (+ 65 (mod i 26))))))) (length s)))
(defun hashes (n) (let ((h (make-hash-table :test 'equal)) (c 0)) (dotimes (i n) (incf (gethash (list i (mod i 7)) h 0))) (maphash (lambda (k v) (declare (ignore k)) (incf c v)) h) c))
(defun big (n) (let ((r 1)) (loop for i from 1 to n do (setf r (* r i))) (integer-length r)))
(defun floats (n) (let ((x 0.5d0)) (dotimes (i n) (setf x (+ (sin x) (sqrt (abs x))))) x))
(defun sorts (n) (let ((l (loop for i below n collect (mod (* i 7919) 1009)))) (car (sort l #'<))))
(defun generic (n) (let ((x 1/3)) (dotimes (i n) (setf x (mod (+ x 7/5 (* x 3)) 11))) x))
(defun work () (fib 12) (strings 60) (hashes 60) (big 60) (floats 100) (sorts 100) (generic 50))
(work)
(format t "ready~%")
(finish-output)
(let ((end (+ (get-internal-real-time) (* 600 internal-time-units-per-second))))
  (loop while (< (get-internal-real-time) end) do (work)))
